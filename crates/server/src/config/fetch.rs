//! `fetch` of a route: the object an event is about, asked for before each attempt.

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader::Section;
use super::secret::SecretRef;
use super::source::PATTERN;
use super::values::{Period, Size};
use super::{COUNT, Config, PERIOD, Problem, RouteConfig, SIZE, TEXT, YES_OR_NO};
use crate::fetch::{Place, Template};
use crate::pattern::Pattern;
use crate::push;

/// What a route fetches, and how it hands it over.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FetchConfig {
    /// Where the object is; `{object}` and the like stand for what the event says.
    pub url: String,
    /// The token that is shown to the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<SecretRef>,
    /// Further headers, credentials among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretRef>,
    /// For which event types; `*` stands for any text.
    #[serde(default = "Pattern::all")]
    pub types: Vec<Pattern>,
    /// What a push carries.
    #[serde(default)]
    pub hand_over: HandOver,
    /// What happens to an event whose object is gone.
    #[serde(default)]
    pub missing: Missing,
    /// How long an answer is kept for other events that were received before it was asked for.
    #[serde(default = "default_cache")]
    pub cache: Period,
    /// How long a request may take, from the connection to the end of the answer.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// Requests per second at most, of one process.
    #[serde(default = "default_rate")]
    pub rate: u32,
    /// The largest answer.
    #[serde(default = "default_max_body")]
    pub max_body: Size,
    /// Whether a request may go to loopback and private addresses.
    #[serde(default)]
    pub allow_private: bool,
}

/// What a push carries where the current object was fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HandOver {
    /// The event and the object.
    #[default]
    Envelope,
    /// The object alone.
    Object,
}

/// What happens to an event whose object is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// It is delivered, and says so.
    #[default]
    Deliver,
    /// It is given up.
    Dead,
}

fn default_cache() -> Period {
    Period::secs(2)
}

fn default_timeout() -> Period {
    Period::secs(5)
}

fn default_rate() -> u32 {
    20
}

fn default_max_body() -> Size {
    Size(1 << 20)
}

/// The longest a request may take.
const LONGEST_FETCH: Period = Period::secs(300);

/// The longest an answer may be kept.
const LONGEST_CACHE: Period = Period::secs(3600);

/// An answer kept for longer is hardly the current state.
const LONG_CACHE: Period = Period::secs(60);

/// The largest answer that may be allowed. As many as there are deliveries are in memory.
const LARGEST_ANSWER: Size = Size(16 << 20);

/// The most headers of one's own.
const HEADERS_MAX: usize = 32;

/// Headers that are about the connection, or that we have to say ourselves.
const NOT_YOURS: [&str; 9] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const HEADER: &str = "env:NAME, file:PATH or text";

impl FetchConfig {
    pub(super) fn read(mut section: Section<'_>) -> Option<Self> {
        let url: Option<String> = section.get("url", TEXT);
        let bearer: Option<String> = section.get("bearer", "env:NAME, file:PATH or text");
        let hand_over = "\"envelope\" or \"object\"";
        let fetch = Self {
            url: url.clone().unwrap_or_default(),
            bearer: bearer.as_deref().map(SecretRef::parse),
            headers: read_headers(section.section("headers")),
            types: section.list("types", PATTERN).unwrap_or_else(Pattern::all),
            hand_over: section.or("hand_over", hand_over, HandOver::default()),
            missing: section.or("missing", "\"deliver\" or \"dead\"", Missing::default()),
            cache: section.or("cache", PERIOD, default_cache()),
            timeout: section.or("timeout", PERIOD, default_timeout()),
            rate: section.or("rate", COUNT, default_rate()),
            max_body: section.or("max_body", SIZE, default_max_body()),
            allow_private: section.or("allow_private", YES_OR_NO, false),
        };
        match &url {
            Some(url) => check_url(&section, url),
            None if !section.has("url") => section.report(
                "",
                "`fetch` has no `url`",
                "write fetch = { url = \"https://api.example.com/v1/invoices/{object}\" }",
            ),
            None => {}
        }
        fetch.check(&section);
        section.finish();
        url.map(|_| fetch)
    }

    fn check(&self, section: &Section<'_>) {
        if self.timeout.0.is_zero() || self.timeout > LONGEST_FETCH {
            let message = format!("`timeout` must be more than 0 and at most {LONGEST_FETCH}");
            section.report("timeout", message, "5s is usual");
        }
        if self.cache > LONGEST_CACHE {
            let hint = "2s is usual; 0s keeps nothing";
            section.report("cache", format!("`cache` must be at most {LONGEST_CACHE}"), hint);
        }
        if self.rate == 0 {
            section.report("rate", "`rate` is 0", "nothing would be fetched; at least 1");
        }
        if !(Size(1 << 10)..=LARGEST_ANSWER).contains(&self.max_body) {
            let message = format!("`max_body` must be between 1KiB and {LARGEST_ANSWER}");
            section.report("max_body", message, "1MiB is usual");
        }
        if self.types.is_empty() || self.types.iter().any(|event| event.as_str().is_empty()) {
            let hint = "write \"*\" for every type, or leave `types` out";
            section.report("types", "`types` names no event type", hint);
        }
        if self.bearer.is_some() && self.headers.keys().any(|name| AUTHORIZATION == **name) {
            let hint = "`bearer` is written as `Authorization: Bearer …`; remove one of the two";
            section.report("bearer", "both `bearer` and the header `Authorization`", hint);
        }
    }

    /// Whether anything it sends is a credential, as far as anybody can tell.
    fn has_credentials(&self) -> bool {
        let is_one = |(name, value): (&String, &SecretRef)| {
            AUTHORIZATION == **name || !matches!(value, SecretRef::Literal(_))
        };
        self.bearer.is_some() || self.headers.iter().any(is_one)
    }
}

fn check_url(section: &Section<'_>, url: &str) {
    if let Err(bad) = Template::parse(url) {
        section.report("url", format!("`url` of `fetch`: {bad}"), bad.hint());
    }
}

/// Reads headers, names in lower case. A wrong one is left out and told.
fn read_headers(mut section: Section<'_>) -> BTreeMap<String, SecretRef> {
    let mut headers = BTreeMap::new();
    for (name, value) in section.rest() {
        let Some(value) = value.as_str() else {
            section.report(&name, format!("the header `{name}` must be {HEADER}"), "");
            continue;
        };
        let lower = name.to_ascii_lowercase();
        if HeaderName::from_bytes(lower.as_bytes()).is_err() {
            let hint = "letters, digits and hyphens, such as Stripe-Version";
            section.report(&name, format!("`{name}` cannot be the name of a header"), hint);
        } else if NOT_YOURS.contains(&lower.as_str()) {
            let message = format!("the header `{name}` is not yours to set");
            section.report(&name, message, "remove it");
        } else if headers.insert(lower, SecretRef::parse(value)).is_some() {
            section.report(&name, format!("the header `{name}` is there twice"), "keep one");
        }
    }
    if headers.len() > HEADERS_MAX {
        section.report("", format!("more than {HEADERS_MAX} headers"), "leave some out");
    }
    headers
}

impl Config {
    /// The headers that let each route fetch, by its name. A handler of this process may have a
    /// route that is pulled from; whoever pulls from elsewhere is not handed anything.
    pub(super) fn fetch_credentials(
        &self,
        is_handled: &dyn Fn(&str) -> bool,
        problems: &mut Vec<Problem>,
        warnings: &mut Vec<Problem>,
    ) -> BTreeMap<String, HeaderMap> {
        let mut credentials = BTreeMap::new();
        for (name, route) in &self.routes {
            let Some(fetch) = &route.fetch else { continue };
            let path = format!("routes.{name}.fetch");
            if route.pull && !is_handled(name) {
                let message =
                    format!("route `{name}` has `fetch`, and workers elsewhere pull from it");
                let hint = "remove it, and let the worker ask for what it needs; `fetch` goes \
                            with `push`, or with a handler in Rust";
                problems.push(self.problem(&path, message, hint));
            }
            match self.credentials(&path, fetch) {
                Ok(headers) => drop(credentials.insert(name.clone(), headers)),
                Err(found) => problems.extend(found),
            }
            let odd = suspicious(route, fetch).into_iter().chain(self.lacking(route, fetch));
            warnings.extend(odd.map(|(key, message, hint)| {
                let problem = Problem::warning(format!("route `{name}`: {message}"), hint);
                self.document.locate(&format!("{path}.{key}"), problem)
            }));
        }
        credentials
    }

    /// Fetches the secrets of one route. The values are marked, so that nobody prints them.
    fn credentials(&self, path: &str, fetch: &FetchConfig) -> Result<HeaderMap, Vec<Problem>> {
        let mut headers = HeaderMap::new();
        let mut problems = Vec::new();
        let bearer = fetch.bearer.iter().map(|secret| {
            let path = format!("{path}.bearer");
            let found = self.fetch(&path, secret);
            (AUTHORIZATION, path, found.map(|found| found.to_header("Bearer ")))
        });
        let others = fetch.headers.iter().filter_map(|(name, secret)| {
            let path = format!("{path}.headers.{name}");
            let found = secret.resolve(&self.environment);
            let found = found.map_err(|(message, hint)| self.problem(&path, message, hint));
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, path, found.map(|found| found.to_header(""))))
        });
        for (name, path, found) in bearer.chain(others) {
            match found {
                Ok(Some(value)) => drop(headers.insert(name, value)),
                Ok(None) => {
                    let message = format!("`{name}` cannot hold what is to be sent there");
                    let hint = "a header is one line of printable ASCII; look for a line break";
                    problems.push(self.problem(&path, message, hint));
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(headers) } else { Err(problems) }
    }

    /// Places of the URL that sources of the route have nothing for.
    fn lacking(&self, route: &RouteConfig, fetch: &FetchConfig) -> Vec<Odd> {
        let Ok(url) = Template::parse(&fetch.url) else { return Vec::new() };
        let mut found = Vec::new();
        for place in [Place::Object, Place::Version].into_iter().filter(|place| url.has(*place)) {
            let lacks = |source: &&String| {
                self.sources.get(source.as_str()).is_some_and(|source| match place {
                    Place::Version => source.entry.version.is_empty(),
                    _ => source.entry.object.is_empty(),
                })
            };
            for source in route.sources.iter().filter(lacks) {
                let message = format!("source `{source}` names no {}", place.as_str());
                found.push(("url", message, "nothing is fetched for its events"));
            }
        }
        found
    }
}

/// A key, what is odd about it, and what to do.
type Odd = (&'static str, String, &'static str);

/// What is probably not meant so.
fn suspicious(route: &RouteConfig, fetch: &FetchConfig) -> Vec<Odd> {
    let mut found = Vec::new();
    let mut warn = |key, message: String, hint| found.push((key, message, hint));
    let takes = |types: &Pattern| route.events.iter().any(|event| overlap(types, event));
    for types in fetch.types.iter().filter(|types| !takes(types)) {
        let message = format!("it fetches for `{}` and takes no such event", types.as_str());
        warn("types", message, "correct `types`, or add it to `events`");
    }
    if fetch.cache > LONG_CACHE {
        let message = format!("what is handed over may be {} old", fetch.cache);
        warn("cache", message, "`cache` is for bursts; 2s is usual");
    }
    if fetch.url.starts_with("http://") && fetch.has_credentials() {
        let message = "the credentials of `fetch` go over the network in the clear".into();
        warn("url", message, "use https://");
    }
    if push::is_refused(&fetch.url, fetch.allow_private) {
        let message = "it fetches from an address that is not public".into();
        warn("url", message, "set `allow_private = true` in `fetch`, or nothing is delivered");
    }
    let turns = f64::from(fetch.rate) * route.sending.timeout.0.as_secs_f64();
    if turns < route.sending.concurrency as f64 {
        let message = format!("{} fetches per second are too few", fetch.rate);
        let hint = "deliveries would wait longer than `timeout` for their turn: raise `rate` of \
                    `fetch`, or lower `concurrency` of the route";
        warn("rate", message, hint);
    }
    if Template::parse(&fetch.url).is_ok_and(|url| !url.has_places()) {
        let message = "the same URL is fetched for every event".into();
        warn("url", message, "say which object with {object}");
    }
    found
}

/// Whether some event type is of both patterns.
fn overlap(one: &Pattern, other: &Pattern) -> bool {
    let (one, other) = (one.as_str().as_bytes(), other.as_str().as_bytes());
    // `row[n]`: whether what is left of `one` and the part of `other` from `n` on have a text in
    // common. From the end, so that each is known when it is asked for.
    let mut row: Vec<bool> = (0..=other.len()).map(|n| is_stars(&other[n..])).collect();
    for m in (0..one.len()).rev() {
        let below = row.clone();
        row[other.len()] = is_stars(&one[m..]);
        for n in (0..other.len()).rev() {
            row[n] = match (one[m], other[n]) {
                (b'*', _) | (_, b'*') => below[n] || row[n + 1],
                (a, b) => a == b && below[n + 1],
            };
        }
    }
    row[0]
}

fn is_stars(pattern: &[u8]) -> bool {
    pattern.iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_have_a_text_in_common_overlap() {
        let both_ways = |one: &str, other: &str| {
            let (one, other) = (Pattern::new(one), Pattern::new(other));
            assert_eq!(overlap(&one, &other), overlap(&other, &one), "{one:?} {other:?}");
            overlap(&one, &other)
        };
        let yes = [
            ("*", "*"),
            ("a", "a"),
            ("invoice.*", "invoice.paid"),
            ("invoice.*", "*.paid"),
            ("a*", "a"),
            ("a*b*c", "a*c"),
            ("*ab", "a*b"),
            ("a*x", "*yx"),
        ];
        for (one, other) in yes {
            assert!(both_ways(one, other), "{one} {other}");
        }
        let no = [("a", "b"), ("invoice.*", "customer.*"), ("*.paid", "*.voided"), ("a*b", "*c")];
        for (one, other) in no {
            assert!(!both_ways(one, other), "{one} {other}");
        }
    }
}
