//! `[routes.NAME]`: from sources to one consumer.

use std::collections::BTreeMap;
use std::time::Duration;

use oncebox::limits;
use oncebox::route::{OnDead as StoredOnDead, RouteRules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader::{Findings, Section};
use super::secret::SecretRef;
use super::source::{Ack, PATTERN, SourceConfig, check_events, check_name, read_renamed_from};
use super::values::Period;
use super::{COUNT, PERIOD, Problem, TEXT, YES_OR_NO};
use crate::pattern::Pattern;

/// One route: which events go to which consumer, and how.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RouteConfig {
    /// The sources it takes events from.
    pub sources: Vec<String>,
    /// Which event types it takes; `*` stands for any text.
    #[serde(default = "Pattern::all")]
    pub events: Vec<Pattern>,
    /// The URL events are pushed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// Whether workers pull from it.
    #[serde(default)]
    pub pull: bool,
    /// The secret that signs what is pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// Whether a push may go to loopback and private addresses.
    #[serde(default)]
    pub allow_private: bool,
    /// Whether events about one object go one at a time, oldest first.
    #[serde(default)]
    pub order: Order,
    /// What happens to an event older than what the consumer has seen of its object.
    #[serde(default)]
    pub stale: Stale,
    /// What a dead delivery does to those behind it.
    #[serde(default)]
    pub on_dead: OnDead,
    /// What makes two events the same operation, of which only the first is delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_operation: Option<SameOperation>,
    /// How failures are tried again.
    #[serde(default)]
    pub retry: Retry,
    /// How often a delivery may be snoozed before it is dead.
    #[serde(default = "default_snoozes")]
    pub max_snoozes: u32,
    /// Statuses that make a delivery dead at once.
    #[serde(default = "default_permanent")]
    pub permanent: Vec<u16>,
    /// How long a push may take, from the connection to the end of the answer.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// How long connecting may take.
    #[serde(default = "default_connect_timeout")]
    pub connect_timeout: Period,
    /// Pushes at the same time, of one process.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    /// Pushes per second at most, of one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// The name this route had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// In which order a route delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// As they come.
    #[default]
    None,
    /// One at a time per object, oldest first.
    Object,
}

/// What a route does with stale events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stale {
    /// Delivers them like any other.
    #[default]
    Deliver,
    /// Skips them.
    Skip,
}

/// What a dead delivery does to those behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDead {
    /// They wait until it is replayed or discarded.
    #[default]
    Hold,
    /// They go on.
    Continue,
}

/// What makes two events the same operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SameOperation {
    /// A preset.
    Preset(SamePreset),
    /// The same type, and the same values in these fields.
    Fields(SameFields),
}

/// A usual way to tell operations apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamePreset {
    /// The same type about the same object.
    Object,
}

/// Fields that are the same in two events of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SameFields {
    /// Where they are in the body, as JSON pointers.
    pub fields: Vec<String>,
    /// How far apart the two may be received.
    #[serde(default = "default_window")]
    pub window: Period,
}

impl SameOperation {
    /// How far apart two events of one operation may be received.
    pub fn window(&self) -> Duration {
        match self {
            Self::Preset(SamePreset::Object) => default_window().0,
            Self::Fields(same) => same.window.0,
        }
    }
}

fn default_window() -> Period {
    Period::secs(300)
}

fn default_snoozes() -> u32 {
    limits::SNOOZES
}

fn default_permanent() -> Vec<u16> {
    vec![400, 410, 413, 415, 422]
}

fn default_timeout() -> Period {
    Period::secs(30)
}

fn default_connect_timeout() -> Period {
    Period::secs(5)
}

fn default_concurrency() -> usize {
    16
}

/// The most fields an operation is told apart by.
const FIELDS_MAX: usize = 16;

/// How failures are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Retry {
    /// How often a delivery is tried before it is dead.
    pub max_attempts: u32,
    /// The pause after the first failure; it doubles with each further one.
    pub base: Period,
    /// The longest pause.
    pub cap: Period,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 8, base: Period::secs(1), cap: Period::secs(3600) }
    }
}

impl RouteConfig {
    /// What the store and the worker decide by.
    pub fn rules(&self) -> RouteRules {
        RouteRules {
            max_attempts: self.retry.max_attempts,
            base: self.retry.base.0,
            cap: self.retry.cap.0,
            max_snoozes: self.max_snoozes,
            ordered: self.order == Order::Object,
            skip_stale: self.stale == Stale::Skip,
            on_dead: match self.on_dead {
                OnDead::Hold => StoredOnDead::Hold,
                OnDead::Continue => StoredOnDead::Continue,
            },
            same_operation: self.same_operation.as_ref().map(SameOperation::window),
            ..RouteRules::default()
        }
    }

    /// The guards that go by the object of an event, as they are written.
    pub(super) fn object_guards(&self) -> Vec<&'static str> {
        let by_object = Some(SameOperation::Preset(SamePreset::Object));
        let guards = [
            (self.order == Order::Object, "`order`"),
            (self.stale == Stale::Skip, STALE),
            (self.same_operation == by_object, "`same_operation`"),
        ];
        guards.iter().filter(|(on, _)| *on).map(|(_, guard)| *guard).collect()
    }

    pub(super) fn read(name: &str, mut section: Section<'_>) -> Option<Self> {
        check_name(&section, name, "route");
        let sources: Option<Vec<String>> = section.list("sources", "the name of a source");
        let secret: Option<String> = section.get("secret", "env:NAME, file:PATH or text");
        let route = Self {
            sources: sources.clone().unwrap_or_default(),
            events: section.list("events", PATTERN).unwrap_or_else(Pattern::all),
            push: section.get("push", TEXT),
            pull: section.or("pull", YES_OR_NO, false),
            secret: secret.as_deref().map(SecretRef::parse),
            allow_private: section.or("allow_private", YES_OR_NO, false),
            order: section.or("order", "\"none\" or \"object\"", Order::None),
            stale: section.or("stale", "\"deliver\" or \"skip\"", Stale::Deliver),
            on_dead: section.or("on_dead", "\"hold\" or \"continue\"", OnDead::Hold),
            same_operation: section.get("same_operation", SAME_OPERATION),
            retry: read_retry(section.section("retry")),
            max_snoozes: section.or("max_snoozes", COUNT, default_snoozes()),
            permanent: section.list("permanent", STATUS).unwrap_or_else(default_permanent),
            timeout: section.or("timeout", PERIOD, default_timeout()),
            connect_timeout: section.or("connect_timeout", PERIOD, default_connect_timeout()),
            concurrency: section.or("concurrency", COUNT, default_concurrency()),
            rate: section.get("rate", "a number of pushes per second, at least 1"),
            renamed_from: read_renamed_from(&mut section, name),
        };
        if sources.is_none_or(|sources| sources.is_empty()) {
            let hint = "write sources = [\"NAME\"]";
            section.report("sources", format!("route `{name}` takes from no source"), hint);
        }
        check_events(&section, &route.events);
        route.check_consumer(&section, name);
        route.check_pushing(&section);
        route.check_same_operation(&section);
        section.finish();
        Some(route)
    }

    fn check_consumer(&self, section: &Section<'_>, name: &str) {
        match (&self.push, self.pull) {
            (Some(_), true) => section.report(
                "pull",
                format!("route `{name}` has both `push` and `pull`"),
                "a route has one consumer; make two routes",
            ),
            (None, false) if !section.has("push") => section.report(
                "",
                format!("route `{name}` has no consumer"),
                "write push = \"https://…\" or pull = true",
            ),
            (None, true) if self.secret.is_some() => section.report(
                "secret",
                "`secret` signs what is pushed, and this route is pulled from",
                "remove it",
            ),
            _ => {}
        }
        let Some(push) = &self.push else { return };
        let url = push.parse::<http::Uri>().ok().filter(|url| {
            matches!(url.scheme_str(), Some("http" | "https")) && url.authority().is_some()
        });
        match url {
            None => section.report(
                "push",
                "`push` is no http or https URL",
                "write the whole URL, such as https://app.example.com/webhooks",
            ),
            Some(url) if url.authority().is_some_and(|host| host.as_str().contains('@')) => {
                section.report(
                    "push",
                    "`push` has a user or password in it",
                    "the consumer recognises Oncebox by the signature; see `secret`",
                );
            }
            Some(_) => {}
        }
    }

    fn check_pushing(&self, section: &Section<'_>) {
        // The defaults may stand there: they are printed.
        let about_pushing = [
            ("allow_private", self.allow_private),
            ("permanent", self.permanent != default_permanent()),
            ("timeout", self.timeout != default_timeout()),
            ("connect_timeout", self.connect_timeout != default_connect_timeout()),
            ("concurrency", self.concurrency != default_concurrency()),
            ("rate", self.rate.is_some()),
        ];
        for (key, _) in about_pushing.into_iter().filter(|(_, said)| self.pull && *said) {
            let message = format!("`{key}` is about pushing, and this route is pulled from");
            section.report(key, message, "remove it");
        }
        if self.permanent.iter().any(|status| !(300..600).contains(status)) {
            let hint = "2xx means processed; a status that is never final needs no mention";
            section.report("permanent", format!("each of `permanent` must be {STATUS}"), hint);
        }
        for (key, period) in [("timeout", self.timeout), ("connect_timeout", self.connect_timeout)]
        {
            if period.0.is_zero() || period > LONGEST_PUSH {
                let message = format!("`{key}` must be more than 0 and at most {LONGEST_PUSH}");
                section.report(key, message, "30s and 5s are usual");
            }
        }
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            let message = format!("`concurrency` must be between 1 and {CONCURRENCY_MAX}");
            section.report("concurrency", message, "16 is usual");
        }
        if self.rate == Some(0) {
            let hint = "nothing would be pushed; at least 1, or `oncebox routes pause`";
            section.report("rate", "`rate` is 0", hint);
        }
    }

    fn check_same_operation(&self, section: &Section<'_>) {
        let Some(SameOperation::Fields(same)) = &self.same_operation else { return };
        let report = |message: &str, hint: &str| section.report("same_operation", message, hint);
        if same.fields.is_empty() || same.fields.len() > FIELDS_MAX {
            let message = format!("`fields` must name 1 to {FIELDS_MAX} fields");
            report(&message, "those that are the same when an operation is sent twice");
        }
        if same.fields.iter().any(|field| !field.starts_with('/')) {
            let hint = "such as \"/data/object/customer\"";
            report("each of `fields` must be a JSON pointer, which begins with a slash", hint);
        }
        if same.window.0.is_zero() {
            report("`window` is 0", "no two events would be the same operation");
        }
    }
}

/// Whoever is to be answered after processing needs one consumer that can be waited for.
pub(super) fn check_acks(
    findings: &Findings<'_>,
    sources: &BTreeMap<String, SourceConfig>,
    routes: &BTreeMap<String, RouteConfig>,
) {
    for (name, source) in sources {
        if source.ack != Ack::Processed {
            continue;
        }
        let mut takers = routes.values().filter(|route| route.sources.contains(name));
        let message = match (takers.next(), takers.next()) {
            (Some(route), None) if route.push.is_some() => continue,
            (Some(_), None) => "is pulled from, and nobody knows when",
            (Some(_), Some(_)) => "is not the only one",
            (None, _) => "does not exist",
        };
        let message = format!("source `{name}` answers after processing, but its route {message}");
        let hint = "`ack = \"processed\"` needs exactly one route, with `push`";
        findings.report(&format!("sources.{name}.ack"), Problem::error(message, hint));
    }
}

/// The guard that goes by versions, too, as it is written.
pub(super) const STALE: &str = "`stale`";

/// The longest a push may take. Its lease is extended meanwhile.
const LONGEST_PUSH: Period = Period::secs(3600);

/// The most pushes of one route at the same time.
const CONCURRENCY_MAX: usize = 1000;

const SAME_OPERATION: &str = "\"object\", or { fields = [\"/json/pointer\"], window = \"5m\" }";

const STATUS: &str = "a status between 300 and 599";

fn read_retry(mut section: Section<'_>) -> Retry {
    let default = Retry::default();
    let retry = Retry {
        max_attempts: section.or("max_attempts", "a whole number", default.max_attempts),
        base: section.or("base", PERIOD, default.base),
        cap: section.or("cap", PERIOD, default.cap),
    };
    if retry.max_attempts == 0 || retry.max_attempts > 1000 {
        section.report("max_attempts", "`max_attempts` must be between 1 and 1000", "8 is usual");
    }
    if retry.base > retry.cap || retry.base.0.is_zero() {
        let hint = "pauses grow from `base` up to `cap`";
        section.report("base", "`base` must be more than 0 and at most `cap`", hint);
    }
    section.finish();
    retry
}
