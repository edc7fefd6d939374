//! `[routes.NAME]`: from sources to one consumer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader::Section;
use super::secret::SecretRef;
use super::source::{PATTERN, check_name, read_renamed_from};
use super::values::Period;
use super::{PERIOD, TEXT, YES_OR_NO};
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
    /// How failures are tried again.
    #[serde(default)]
    pub retry: Retry,
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
            retry: read_retry(section.section("retry")),
            renamed_from: read_renamed_from(&mut section, name),
        };
        if sources.is_none_or(|sources| sources.is_empty()) {
            let hint = "write sources = [\"NAME\"]";
            section.report("sources", format!("route `{name}` takes from no source"), hint);
        }
        route.check_consumer(&section, name);
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
}

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
