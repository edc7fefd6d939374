//! How deliveries are sent: what routes and destinations have in common.

use std::time::Duration;

use oncebox::limits;
use oncebox::route::{OnDead as StoredOnDead, RouteRules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader::Section;
use super::secret::SecretRef;
use super::source::read_renamed_from;
use super::values::Period;
use super::{COUNT, PERIOD, YES_OR_NO};

/// The keys that `[routes.NAME]` and `[destinations.NAME]` share.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sending {
    /// The secret that signs what is pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// Whether a push may go to loopback and private addresses.
    #[serde(default)]
    pub allow_private: bool,
    /// What a dead delivery does to those behind it.
    #[serde(default)]
    pub on_dead: OnDead,
    /// How long one that keeps failing holds up those behind it, with `on_dead = "continue"`.
    #[serde(default = "default_hold_for")]
    pub hold_for: Period,
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
    /// The name it had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
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

/// How failures are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Retry {
    /// How often a delivery is tried before it is dead.
    pub max_attempts: u32,
    /// The pause after the first failure; each further one is four times as long.
    pub base: Period,
    /// The longest pause.
    pub cap: Period,
    /// For how long a delivery is tried, from its first attempt on.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub budget: Option<Period>,
}

impl Default for Retry {
    fn default() -> Self {
        let (base, cap) = limits::RETRY_PAUSE;
        let max_attempts = limits::RETRY_ATTEMPTS;
        Self { max_attempts, base: Period(base), cap: Period(cap), budget: None }
    }
}

fn default_hold_for() -> Period {
    Period(limits::HOLD_FOR)
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

/// The longest a push may take. Its lease is extended meanwhile.
const LONGEST_PUSH: Period = Period::secs(3600);

/// The longest that a delivery may be tried for.
const LONGEST_BUDGET: Period = Period::days(90);

/// The most pushes to one place at the same time.
const CONCURRENCY_MAX: usize = 1000;

const STATUS: &str = "a status between 300 and 599";

impl Sending {
    /// What the store and the worker decide by, nothing guarded.
    pub fn rules(&self) -> RouteRules {
        RouteRules {
            max_attempts: self.retry.max_attempts,
            base: self.retry.base.0,
            cap: self.retry.cap.0,
            budget: self.retry.budget.map(|budget| budget.0),
            hold_for: self.hold_for.0,
            max_snoozes: self.max_snoozes,
            on_dead: match self.on_dead {
                OnDead::Hold => StoredOnDead::Hold,
                OnDead::Continue => StoredOnDead::Continue,
            },
            ..RouteRules::default()
        }
    }

    /// How long the lease of a push is unless it is extended: what a server that was killed had is
    /// pushed again soon after its time-out.
    pub fn lease(&self) -> Duration {
        self.timeout.0.saturating_add(limits::PUSH_LEASE_MARGIN).min(limits::LEASE)
    }

    pub(super) fn read(name: &str, section: &mut Section<'_>) -> Self {
        let secret: Option<String> = section.get("secret", "env:NAME, file:PATH or text");
        Self {
            secret: secret.as_deref().map(SecretRef::parse),
            allow_private: section.or("allow_private", YES_OR_NO, false),
            on_dead: section.or("on_dead", "\"hold\" or \"continue\"", OnDead::Hold),
            hold_for: section.or("hold_for", PERIOD, default_hold_for()),
            retry: read_retry(section.section("retry")),
            max_snoozes: section.or("max_snoozes", COUNT, default_snoozes()),
            permanent: section.list("permanent", STATUS).unwrap_or_else(default_permanent),
            timeout: section.or("timeout", PERIOD, default_timeout()),
            connect_timeout: section.or("connect_timeout", PERIOD, default_connect_timeout()),
            concurrency: section.or("concurrency", COUNT, default_concurrency()),
            rate: section.get("rate", "a number of pushes per second, at least 1"),
            renamed_from: read_renamed_from(section, name),
        }
    }

    pub(super) fn check(&self, section: &Section<'_>) {
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
        if self.hold_for != default_hold_for() && self.on_dead == OnDead::Hold {
            let hint = "write on_dead = \"continue\", or remove `hold_for`";
            section.report("hold_for", "`hold_for` needs `on_dead = \"continue\"`", hint);
        }
        if self.rate == Some(0) {
            let hint = "nothing would be pushed; at least 1, or `oncebox routes pause`";
            section.report("rate", "`rate` is 0", hint);
        }
    }

    /// The keys that say nothing where nothing is pushed, and whether they were changed. The
    /// defaults may stand there: they are printed.
    pub(super) fn about_pushing(&self) -> [(&'static str, bool); 6] {
        [
            ("allow_private", self.allow_private),
            ("permanent", self.permanent != default_permanent()),
            ("timeout", self.timeout != default_timeout()),
            ("connect_timeout", self.connect_timeout != default_connect_timeout()),
            ("concurrency", self.concurrency != default_concurrency()),
            ("rate", self.rate.is_some()),
        ]
    }
}

/// Reports a URL that nothing can be pushed to.
pub(super) fn check_url(section: &Section<'_>, key: &str, url: &str, example: &str) {
    let parsed = url.parse::<http::Uri>().ok().filter(|url| {
        matches!(url.scheme_str(), Some("http" | "https")) && url.authority().is_some()
    });
    match parsed {
        None => section.report(
            key,
            format!("`{key}` is no http or https URL"),
            format!("write the whole URL, such as {example}"),
        ),
        Some(url) if url.authority().is_some_and(|host| host.as_str().contains('@')) => {
            section.report(
                key,
                format!("`{key}` has a user or password in it"),
                "the consumer recognises Oncebox by the signature; see `secret`",
            );
        }
        Some(_) => {}
    }
}

fn read_retry(mut section: Section<'_>) -> Retry {
    let default = Retry::default();
    let (base, cap) =
        (section.or("base", PERIOD, default.base), section.or("cap", PERIOD, default.cap));
    let budget: Option<Period> = section.get("for", PERIOD);
    // A budget alone decides; the attempts it needs follow from it.
    let max_attempts = match budget {
        Some(budget) if base <= cap && !base.0.is_zero() && budget <= LONGEST_BUDGET => {
            RouteRules::attempts_within(base.0, cap.0, budget.0)
        }
        _ => default.max_attempts,
    };
    let max_attempts = section.or("max_attempts", "a whole number", max_attempts);
    if max_attempts == 0 || max_attempts > limits::RETRY_ATTEMPTS_MAX {
        let message =
            format!("`max_attempts` must be between 1 and {}", limits::RETRY_ATTEMPTS_MAX);
        section.report("max_attempts", message, "15 is usual");
    }
    if base > cap || base.0.is_zero() {
        let hint = "pauses grow from `base` up to `cap`";
        section.report("base", "`base` must be more than 0 and at most `cap`", hint);
    }
    if budget.is_some_and(|budget| budget.0.is_zero() || budget > LONGEST_BUDGET) {
        let message = format!("`for` must be more than 0 and at most {LONGEST_BUDGET}");
        section.report("for", message, "\"3d\" is usual");
    }
    section.finish();
    Retry { max_attempts, base, cap, budget }
}
