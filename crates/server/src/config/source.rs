//! `[sources.NAME]`: a provider, its secrets and its rules.

use std::collections::BTreeMap;

use oncebox::limits::REJECTED_MOST;
use oncebox::receipt::OddRules;
use oncebox::retention::Keep;
use oncebox_verify::{Provider, Scheme, Special, catalogue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::odd::{self, OddChoice};
use super::reader::Section;
use super::retention::RetentionOverride;
use super::secret::SecretRef;
use super::setting::{self, SettingRef};
use super::values::{Period, Size, is_name};
use super::{COUNT, PERIOD, RetentionConfig, SIZE, TEXT, YES_OR_NO, generic, keep};
use crate::capture;
use crate::pattern::Pattern;

/// One source: where webhooks of one provider come in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceConfig {
    /// A provider of the catalogue, or `hmac` or `token` for the generic schemes.
    pub provider: String,
    /// The secrets shared with the provider, or its public keys. Any of them verifies a request.
    /// None where everything that proves a request is fetched from the provider.
    #[serde(default)]
    pub secrets: Vec<SecretRef>,
    /// Which event types are stored; `*` stands for any text. Others are acknowledged only.
    #[serde(default = "Pattern::all")]
    pub events: Vec<Pattern>,
    /// The name this source had before; its receipts and identities stay its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Events per second that are recorded; more are told to come back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Events that may come at once, above the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Bytes of headers and bodies this source may keep; when it is full, events are told to come
    /// back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<Size>,
    /// How long this source keeps what it received, where it differs from `[retention]`.
    #[serde(default, skip_serializing_if = "RetentionOverride::is_empty")]
    pub retention: RetentionOverride,
    /// When the provider is answered.
    #[serde(default)]
    pub ack: Ack,
    /// How long an answer waits for the outcome.
    #[serde(default = "default_ack_timeout")]
    pub ack_timeout: Period,
    /// Whether an identical body under a new unsigned id is delivered or held, where it differs
    /// from what the provider's entry says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twins: Option<OddChoice>,
    /// Whether new content under a known identity is delivered or held, where it differs from what
    /// the provider's entry says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<OddChoice>,
    /// How many rejected requests of each reason are kept for a day, unverified, to find out why.
    #[serde(default)]
    pub keep_rejected: u32,
    /// The URL the provider calls, for schemes that sign it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// Whether `provider = "capture"` may keep what nobody verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_unverified: bool,
    /// Whether keys of the provider may be fetched from loopback and private addresses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
    /// Whether subscriptions of Amazon SNS are confirmed for the operator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm_subscriptions: bool,
    /// What the provider needs to know beside the secrets.
    #[serde(flatten)]
    #[schemars(skip)]
    pub settings: BTreeMap<String, SettingRef>,
    /// The keys of the generic schemes.
    #[serde(flatten)]
    #[schemars(skip)]
    pub scheme: toml::Table,
    /// The provider, as the catalogue or the keys above describe it.
    #[serde(skip)]
    pub entry: Provider,
}

/// When the provider is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ack {
    /// Once the event is recorded.
    #[default]
    Recorded,
    /// Once it was processed, or could not be.
    Processed,
}

fn default_ack_timeout() -> Period {
    Period::secs(4)
}

/// Events per second of a source whose requests are events of their own.
pub const EACH_RATE: u32 = 50;

/// Events that may come to such a source at once, above the rate.
pub const EACH_BURST: u32 = 1000;

/// The longest an answer may wait for the outcome. No provider is that patient.
const LONGEST_ACK: Period = Period::secs(60);

impl SourceConfig {
    /// How long this source keeps what it received.
    pub fn keep(&self, default: &RetentionConfig) -> Keep {
        keep(
            self.retention.payloads.unwrap_or(default.payloads),
            self.retention.identities.unwrap_or(default.identities),
        )
    }

    /// How many events per second are recorded, and how many at once above that. Where every
    /// request is an event of its own, a captured one would be accepted without end: there is a
    /// rate unless the source has its own.
    pub fn rate_limit(&self) -> Option<(u32, Option<u32>)> {
        match self.rate {
            Some(rate) => Some((rate, self.burst)),
            None => self.entry.takes_each().then_some((EACH_RATE, Some(EACH_BURST))),
        }
    }

    /// Whether the provider is answered after its event was processed.
    pub fn acks_late(&self) -> bool {
        self.ack == Ack::Processed
    }

    /// What happens to arrivals that look odd.
    pub fn odd_rules(&self) -> OddRules {
        odd::rules(&self.entry, self.twins, self.conflicts)
    }

    /// Whether the provider signs the URL it calls.
    pub fn signs_url(&self) -> bool {
        self.entry.signs_url()
    }

    /// Whether it has no secret of its own, for its provider tells it.
    pub fn waits_for_secret(&self) -> bool {
        self.secrets.is_empty() && self.entry.pairing.is_some()
    }

    /// Whether it keeps whatever comes, unverified.
    pub fn is_capture(&self) -> bool {
        capture::is_capture(&self.entry)
    }

    /// Whether it says all that its provider needs.
    pub(super) fn is_complete(&self) -> bool {
        let is_there = |key: &str| self.settings.contains_key(key);
        let mut needed = self.entry.settings.iter().filter(|setting| setting.needed);
        (!self.secrets.is_empty()
            || self.is_capture()
            || needs_no_secret(&self.entry, &self.settings))
            && needed.all(|setting| is_there(&setting.key))
    }

    pub(super) fn read(
        name: &str,
        mut section: Section<'_>,
        default: &RetentionConfig,
    ) -> Option<Self> {
        check_name(&section, name, "source");
        let provider: Option<String> = section.get("provider", "the name of a provider");
        let secrets: Option<Vec<String>> = section.list("secrets", "env:NAME, file:PATH or text");
        let events = section.list("events", PATTERN).unwrap_or_else(Pattern::all);
        let renamed_from = read_renamed_from(&mut section, name);
        let rate = section.get("rate", "a number of events per second, at least 1");
        let burst = section.get("burst", "a number of events, at least 1");
        let quota = section.get("quota", SIZE);
        let captures = provider.as_deref() == Some(capture::NAME);
        let quota = quota.or(captures.then_some(capture::QUOTA));
        let own = captures.then_some(capture::RETENTION);
        let retention = RetentionOverride::read(section.section("retention"), default, own);
        let ack = section.or("ack", "\"recorded\" or \"processed\"", Ack::Recorded);
        let ack_timeout = section.or("ack_timeout", PERIOD, default_ack_timeout());
        let (twins, conflicts) = odd::read(&mut section);
        let keep_rejected = read_keep_rejected(&mut section, captures);
        let public_url = section.get("public_url", TEXT);
        let allow_unverified = section.or("allow_unverified", YES_OR_NO, false);
        let allow_private = section.or("allow_private", YES_OR_NO, false);
        let confirm_subscriptions = section.or("confirm_subscriptions", YES_OR_NO, false);
        check_events(&section, &events);
        check_ack(&section, ack, ack_timeout);
        let is_told = secrets.as_ref().is_some_and(|secrets| !secrets.is_empty());
        check_capture(&section, captures, allow_unverified, is_told || ack == Ack::Processed);
        check_rate(&section, rate, burst);
        check_public_url(&section, public_url.as_deref());
        let told = read_provider(&mut section, name, provider.as_deref());
        let needs_none = |told: &Told| captures || needs_no_secret(&told.entry, &told.settings);
        let has_none = secrets.as_ref().map_or(!section.has("secrets"), Vec::is_empty);
        if has_none && !told.as_ref().is_some_and(needs_none) {
            let hint = "write secrets = [\"env:NAME\"]; without one any sender passes for it";
            section.report("secrets", format!("source `{name}` has no secret"), hint);
        }
        let Told { entry, settings, scheme } = told?;
        odd::check(&section, twins, &entry);
        check_fetching(&section, allow_private, &entry);
        check_subscriptions(&section, confirm_subscriptions, &entry);
        Some(Self {
            provider: provider?,
            secrets: match section.has("secrets") {
                true => secrets?.iter().map(|text| SecretRef::parse(text)).collect(),
                false => Vec::new(),
            },
            events,
            renamed_from,
            rate,
            burst,
            quota,
            retention,
            ack,
            ack_timeout,
            twins,
            conflicts,
            keep_rejected,
            public_url,
            allow_unverified,
            allow_private,
            confirm_subscriptions,
            settings,
            scheme,
            entry,
        })
    }
}

pub(super) const PATTERN: &str = "an event type, in which * stands for any text";

/// What metrics and logs call a source that is not ours.
const UNKNOWN: &str = "unknown";

pub(super) fn check_name(section: &Section<'_>, name: &str, what: &str) {
    check_name_of(section, "", name, what);
}

/// As [`check_name`], of a name that a key gives.
pub(super) fn check_name_of(section: &Section<'_>, key: &str, name: &str, what: &str) {
    if !is_name(name) {
        section.report(
            key,
            format!("`{name}` cannot be the name of a {what}"),
            "names are a-z, 0-9 and hyphens, begin with a letter or digit, up to 63 characters",
        );
    }
    if name == UNKNOWN {
        section.report(
            key,
            format!("`{UNKNOWN}` cannot be the name of a {what}"),
            "metrics and logs call requests to no source of ours so; choose another",
        );
    }
}

pub(super) fn read_renamed_from(section: &mut Section<'_>, name: &str) -> Option<String> {
    let old: String = section.get("renamed_from", "the name it had before")?;
    if old == name || !is_name(&old) {
        let hint = "give the name that is in the store, or remove the key";
        section.report("renamed_from", format!("`{name}` cannot be renamed from `{old}`"), hint);
        return None;
    }
    Some(old)
}

/// No event has an empty type: whoever writes one means something else.
pub(super) fn check_events(section: &Section<'_>, events: &[Pattern]) {
    for (number, _) in events.iter().enumerate().filter(|(_, event)| event.as_str().is_empty()) {
        let hint = "write \"*\" for every type, or leave `events` out";
        section.report(&format!("events[{number}]"), "an event type must not be empty", hint);
    }
}

fn check_rate(section: &Section<'_>, rate: Option<u32>, burst: Option<u32>) {
    for (key, value) in [("rate", rate), ("burst", burst)] {
        if value == Some(0) {
            section.report(key, format!("`{key}` is 0"), "nothing would be accepted; at least 1");
        }
    }
    if burst.is_some() && !section.has("rate") {
        section.report("burst", "`burst` without `rate`", "set a rate, or remove the burst");
    }
}

fn read_keep_rejected(section: &mut Section<'_>, captures: bool) -> u32 {
    let number = section.or("keep_rejected", COUNT, 0);
    if number > REJECTED_MOST {
        let message = format!("`keep_rejected` must be at most {REJECTED_MOST}");
        section.report("keep_rejected", message, "20 is enough to find out why");
    }
    if number > 0 && captures {
        let message = "`capture` rejects nothing, so there is nothing for `keep_rejected`";
        section.report("keep_rejected", message, "remove it");
    }
    number
}

fn check_ack(section: &Section<'_>, ack: Ack, timeout: Period) {
    if timeout.0.is_zero() || timeout > LONGEST_ACK {
        let message = format!("`ack_timeout` must be more than 0 and at most {LONGEST_ACK}");
        section.report("ack_timeout", message, "4s is usual: some providers give up after five");
    }
    // The default may stand there: it is printed.
    if timeout != default_ack_timeout() && ack == Ack::Recorded {
        let hint = "set it to \"processed\", or remove `ack_timeout`";
        section.report("ack_timeout", "`ack_timeout` without `ack = \"processed\"`", hint);
    }
}

/// Where nothing is fetched, nothing has to be allowed.
fn check_fetching(section: &Section<'_>, allow_private: bool, entry: &Provider) {
    if allow_private && !entry.schemes.iter().any(Scheme::fetches_keys) {
        let message = "`allow_private` says where keys may be fetched from, and none are";
        section.report("allow_private", message, "remove it; routes have one of their own");
    }
}

fn check_subscriptions(section: &Section<'_>, confirms: bool, entry: &Provider) {
    if confirms && !entry.schemes.contains(&Scheme::Special(Special::Sns)) {
        let message = "`confirm_subscriptions` is for Amazon SNS";
        section.report("confirm_subscriptions", message, "remove it");
    }
}

/// What nobody verified is kept only where that is asked for, and nowhere by mistake.
fn check_capture(section: &Section<'_>, captures: bool, allowed: bool, expects: bool) {
    if captures && !allowed {
        let message = "`capture` keeps whatever anybody sends, and verifies nothing of it";
        let hint = "write `allow_unverified = true` if that is what you want";
        section.report("provider", message, hint);
    }
    if allowed && !captures {
        let message = "`allow_unverified` is for `provider = \"capture\"`";
        section.report("allow_unverified", message, "remove it: this source verifies");
    }
    if captures && expects {
        let message = "`capture` checks no secret, and answers once a request is kept";
        let hint = "remove `secrets` and `ack`; `oncebox verify` checks a capture with a secret";
        section.report("provider", message, hint);
    }
}

fn check_public_url(section: &Section<'_>, url: Option<&str>) {
    let Some(url) = url else { return };
    let parsed = url.parse::<http::Uri>().ok();
    let absolute = parsed.filter(|url| url.authority().is_some());
    if !absolute.is_some_and(|url| matches!(url.scheme_str(), Some("http" | "https"))) {
        let hint = "write the whole URL as given to the provider, https:// included";
        section.report("public_url", "`public_url` is no http or https URL", hint);
    }
}

/// Whether a source may have no secret: what proves requests is fetched, or here, or the provider
/// tells it.
fn needs_no_secret(entry: &Provider, settings: &BTreeMap<String, SettingRef>) -> bool {
    entry.needs_no_secret()
        || entry.pairing.is_some()
        || settings.keys().any(|key| setting::is_key(key))
}

/// What a source says of its provider.
struct Told {
    entry: Provider,
    settings: BTreeMap<String, SettingRef>,
    scheme: toml::Table,
}

/// Finds or builds the provider; for the catalogue's, keys that its entry does not name are
/// unknown keys.
fn read_provider(section: &mut Section<'_>, name: &str, provider: Option<&str>) -> Option<Told> {
    let Some(provider) = provider else {
        if !section.has("provider") {
            let hint = "write provider = \"stripe\"; `oncebox providers` lists all";
            section.report("provider", format!("source `{name}` has no provider"), hint);
        }
        section.finish_without_provider();
        return None;
    };
    if provider == capture::NAME {
        section.finish();
        let (settings, scheme) = (BTreeMap::new(), toml::Table::new());
        return Some(Told { entry: capture::entry(), settings, scheme });
    }
    if generic::keys(provider).is_some() {
        let scheme = section.rest();
        let entry = generic::read(section, provider, &scheme)?;
        return Some(Told { entry, settings: BTreeMap::new(), scheme });
    }
    let Some(entry) = catalogue::find(provider) else {
        let hint = match catalogue::nearest(provider) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`oncebox providers` lists all; `hmac` and `token` are generic".into(),
        };
        section.report("provider", format!("there is no provider `{provider}`"), hint);
        section.finish_without_provider();
        return None;
    };
    let settings = setting::read(section, name, entry);
    section.finish();
    let entry = generic::with_fields(section, entry, &settings)?;
    Some(Told { entry, settings, scheme: toml::Table::new() })
}
