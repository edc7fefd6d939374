//! `[routes.NAME]`: from sources to one consumer.

use std::collections::BTreeMap;
use std::time::Duration;

use oncebox::route::RouteRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fetch::FetchConfig;
use super::reader::{Findings, Section};
use super::sending::{Sending, check_url};
use super::source::{Ack, PATTERN, SourceConfig, check_events, check_name, check_name_of};
use super::values::Period;
use super::{Problem, TEXT, YES_OR_NO};
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
    /// The service whose workers pull from it: keys of effects are told apart by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Whether events about one object go one at a time, oldest first.
    #[serde(default)]
    pub order: Order,
    /// What happens to an event older than what the consumer has seen of its object.
    #[serde(default)]
    pub stale: Stale,
    /// What makes two events the same operation, of which only the first is delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_operation: Option<SameOperation>,
    /// What is fetched before each attempt, and handed over with the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch: Option<FetchConfig>,
    /// Whether it takes what nobody verified, from sources with `provider = "capture"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_unverified: bool,
    /// How what it pushes is signed.
    #[serde(default)]
    pub sign: Sign,
    /// The URL that is signed, where a provider signs one and it is not that of `push`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_url: Option<String>,
    /// How what it takes is sent.
    #[serde(flatten)]
    pub sending: Sending,
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

/// How a route signs what it pushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// By Standard Webhooks, with the secret of the route.
    #[default]
    Standard,
    /// Afresh as the provider would, with the secret of the route, or else the first of the source.
    Provider,
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

/// What SDKs of providers answer where a signature is wrong.
const REFUSALS: [u16; 2] = [400, 401];

/// The most fields an operation is told apart by.
const FIELDS_MAX: usize = 16;

impl RouteConfig {
    /// What the store and the worker decide by.
    pub fn rules(&self) -> RouteRules {
        RouteRules {
            ordered: self.order == Order::Object,
            skip_stale: self.stale == Stale::Skip,
            same_operation: self.same_operation.as_ref().map(SameOperation::window),
            pulled: self.pull,
            ..self.sending.rules()
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
        let fetch = section.has("fetch").then(|| FetchConfig::read(section.section("fetch")));
        section.expect("fetch");
        let mut route = Self {
            sources: sources.clone().unwrap_or_default(),
            events: section.list("events", PATTERN).unwrap_or_else(Pattern::all),
            push: section.get("push", TEXT),
            pull: section.or("pull", YES_OR_NO, false),
            service: section.get("service", "the name of a service"),
            order: section.or("order", "\"none\" or \"object\"", Order::None),
            stale: section.or("stale", "\"deliver\" or \"skip\"", Stale::Deliver),
            same_operation: section.get("same_operation", SAME_OPERATION),
            fetch: fetch.flatten(),
            allow_unverified: section.or("allow_unverified", YES_OR_NO, false),
            sign: section.or("sign", "\"standard\" or \"provider\"", Sign::Standard),
            sign_url: section.get("sign_url", TEXT),
            sending: Sending::read(name, &mut section),
        };
        if sources.is_none_or(|sources| sources.is_empty()) {
            let hint = "write sources = [\"NAME\"]";
            section.report("sources", format!("route `{name}` takes from no source"), hint);
        }
        check_events(&section, &route.events);
        route.check_consumer(&section, name);
        route.check_signing(&section);
        route.check_pulling(&section);
        route.sending.check(&section);
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
            (None, true) if self.sending.secret.is_some() => section.report(
                "secret",
                "`secret` signs what is pushed, and this route is pulled from",
                "remove it",
            ),
            _ => {}
        }
        if let Some(push) = &self.push {
            check_url(section, "push", push, "https://app.example.com/webhooks");
        }
    }

    /// A provider's SDK answers 400 or 401 where a signature is wrong, also to all that is pushed
    /// while secrets are changed. That must kill nothing.
    fn check_signing(&mut self, section: &Section<'_>) {
        if let Some(url) = &self.sign_url {
            check_url(section, "sign_url", url, "https://app.example.com/webhooks");
        }
        if self.sign == Sign::Standard {
            if self.sign_url.is_some() {
                let hint = "write sign = \"provider\", or remove it";
                section.report("sign_url", "`sign_url` without `sign = \"provider\"`", hint);
            }
            return;
        }
        if self.pull {
            let message = "`sign` is about pushing, and this route is pulled from";
            section.report("sign", message, "remove it");
        }
        if self.fetch.is_some() {
            let message = "`sign = \"provider\"` cannot vouch for what `fetch` adds to the event";
            section.report("sign", message, "the provider never sent that; make two routes");
        }
        if !section.has("permanent") {
            self.sending.permanent.retain(|status| !REFUSALS.contains(status));
        } else if self.sending.permanent.iter().any(|status| REFUSALS.contains(status)) {
            let message = "400 and 401 are always retried where `sign = \"provider\"`: a handler \
                           answers so while secrets are changed";
            let hint = "answer 422, or `Oncebox-Outcome: dead`, to what can never be processed";
            section.report("permanent", message, hint);
        }
    }

    fn check_pulling(&self, section: &Section<'_>) {
        if let Some(service) = &self.service {
            check_name_of(section, "service", service, "service");
            if !self.pull {
                let message = "`service` is about workers that pull, and this route is pushed";
                section.report("service", message, "remove it");
            }
        }
        let about_pushing = self.sending.about_pushing();
        for (key, _) in about_pushing.into_iter().filter(|(_, said)| self.pull && *said) {
            let message = format!("`{key}` is about pushing, and this route is pulled from");
            section.report(key, message, "remove it");
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

/// What nobody verified reaches a consumer only where its route says so.
pub(super) fn check_captures(
    findings: &Findings<'_>,
    sources: &BTreeMap<String, SourceConfig>,
    routes: &BTreeMap<String, RouteConfig>,
) {
    for (name, route) in routes.iter().filter(|(_, route)| !route.allow_unverified) {
        for (number, source) in route.sources.iter().enumerate() {
            if sources.get(source).is_some_and(SourceConfig::is_capture) {
                let message =
                    format!("route `{name}` takes from `{source}`, which verifies nothing");
                let hint = "write `allow_unverified = true` for the route if its consumer expects \
                            that; a push then says `Oncebox-Trust: unverified`";
                let path = format!("routes.{name}.sources[{number}]");
                findings.report(&path, Problem::error(message, hint));
            }
        }
    }
}

/// The guard that goes by versions, too, as it is written.
pub(super) const STALE: &str = "`stale`";

const SAME_OPERATION: &str = "\"object\", or { fields = [\"/json/pointer\"], window = \"5m\" }";
