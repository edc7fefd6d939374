//! What an answer of a destination means.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use oncebox::delivery::Outcome;
use oncebox::limits;
use oncebox::worker::{Health, Report};

/// When a delivery is snoozed by a consumer that does not say until when.
const SNOOZE: Duration = Duration::from_secs(60);

/// What a push came to, and a word for why it is to be repeated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) report: Report,
    /// For the metric; only where it is to be repeated.
    pub(super) reason: Option<String>,
}

impl Verdict {
    /// There was no answer.
    pub(super) fn failed(health: Health, reason: &str, detail: impl Into<String>) -> Self {
        let report = Report { health, ..Report::failed(detail) };
        Self { report, reason: Some(reason.to_owned()) }
    }
}

/// Classifies an answer: by the consumer's own word if it gives one, else by its status.
pub(super) fn classify(
    status: StatusCode,
    headers: &HeaderMap,
    beginning: &str,
    permanent: &[u16],
    now: Timestamp,
) -> Verdict {
    let after = headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, now));
    let said = text(headers, "oncebox-outcome").and_then(|word| outcome_of(&word, after));
    let given = text(headers, "oncebox-reason");
    let outcome = said.clone().unwrap_or_else(|| by_status(status, permanent, after));
    let detail = match (&outcome, &given) {
        (Outcome::Processed, _) => None,
        (_, Some(reason)) => Some(reason.clone()),
        // The consumer knows what it says.
        (Outcome::Stale, None) => None,
        (_, None) => Some(describe(status, beginning)),
    };
    let repeated = matches!(outcome, Outcome::Retry { .. } | Outcome::Snooze { .. });
    let health = match status {
        // A consumer that answers with `Oncebox-Outcome` is well.
        _ if said.is_some() => Health::Well,
        StatusCode::TOO_MANY_REQUESTS => Health::Overloaded,
        status if status.is_server_error() => Health::Failing,
        _ => Health::Well,
    };
    Verdict {
        reason: repeated.then(|| given.unwrap_or_else(|| format!("status_{}", status.as_u16()))),
        report: Report {
            status: Some(status.as_u16()),
            detail,
            summary: text(headers, "oncebox-summary"),
            health,
            ..Report::of(outcome)
        },
    }
}

fn by_status(status: StatusCode, permanent: &[u16], after: Option<Duration>) -> Outcome {
    if status.is_success() {
        Outcome::Processed
    } else if permanent.contains(&status.as_u16()) {
        Outcome::Dead
    } else {
        Outcome::Retry { after }
    }
}

/// What the consumer says by `Oncebox-Outcome`. A word nobody knows says nothing.
fn outcome_of(word: &str, after: Option<Duration>) -> Option<Outcome> {
    match word.to_ascii_lowercase().as_str() {
        "processed" => Some(Outcome::Processed),
        "stale" => Some(Outcome::Stale),
        "retry" => Some(Outcome::Retry { after }),
        "snooze" => Some(Outcome::Snooze { after: after.unwrap_or(SNOOZE) }),
        "dead" => Some(Outcome::Dead),
        _ => None,
    }
}

/// `Retry-After`: a number of seconds, or a date.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit mean: as long as can be.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// The text of a header, fit to be kept and shown.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(name)?.as_bytes()).into_owned();
    let shown = bounded(&value, limits::DETAIL_BYTES);
    (!shown.is_empty()).then_some(shown)
}

fn describe(status: StatusCode, beginning: &str) -> String {
    let beginning = bounded(beginning, limits::DETAIL_BYTES / 2);
    let status = status.to_string().replace("<unknown status code>", "");
    let status = status.trim_end();
    match beginning.is_empty() {
        true => format!("answered {status}"),
        false => format!("answered {status}: {beginning}"),
    }
}

/// One line without control characters, of so many bytes at most.
fn bounded(text: &str, bytes: usize) -> String {
    let spaced = text.replace(|letter: char| letter.is_control(), " ");
    let mut line = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > bytes {
        let end = (0..=bytes).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        line.truncate(end);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &str)]) -> Verdict {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        classify(status, &map, "it broke\n", &[400, 410, 413, 415, 422], now)
    }

    fn outcome(status: u16, headers: &[(&'static str, &str)]) -> Outcome {
        answer(status, headers).report.outcome
    }

    const AGAIN: Outcome = Outcome::Retry { after: None };

    fn after(seconds: u64) -> Outcome {
        Outcome::Retry { after: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn statuses_have_their_meaning() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(outcome(status, &[]), Outcome::Processed, "{status}");
        }
        for status in [400, 410, 413, 415, 422] {
            assert_eq!(outcome(status, &[]), Outcome::Dead, "{status}");
        }
        for status in [101, 300, 301, 304, 308, 401, 403, 404, 409, 429, 500, 501, 503, 599, 999] {
            assert_eq!(outcome(status, &[]), AGAIN, "{status}");
        }
    }

    #[test]
    fn only_trouble_of_the_destination_is_counted_against_it() {
        for status in [200, 422, 404, 302] {
            assert_eq!(answer(status, &[]).report.health, Health::Well, "{status}");
        }
        assert_eq!(answer(429, &[]).report.health, Health::Overloaded);
        for status in [500, 503, 599] {
            assert_eq!(answer(status, &[]).report.health, Health::Failing, "{status}");
        }
        for status in [429, 503] {
            let on_purpose = answer(status, &[("oncebox-outcome", "retry")]);
            assert_eq!(on_purpose.report.health, Health::Well, "{status}");
        }
    }

    #[test]
    fn a_consumer_may_say_when_to_come_back() {
        assert_eq!(outcome(503, &[("retry-after", "120")]), after(120));
        assert_eq!(outcome(429, &[("retry-after", "0")]), after(0));
        let date = "Fri, 02 Jan 2026 03:05:05 GMT";
        assert_eq!(outcome(503, &[("retry-after", date)]), after(60));
        let past = "Fri, 02 Jan 2026 03:00:00 GMT";
        assert_eq!(outcome(503, &[("retry-after", past)]), after(0));
        assert_eq!(outcome(503, &[("retry-after", "99999999999999999999999")]), after(u64::MAX));
        for nothing in ["", "-1", "soon", "1.5"] {
            assert_eq!(outcome(503, &[("retry-after", nothing)]), AGAIN, "{nothing}");
        }
    }

    #[test]
    fn the_consumers_word_overrides_its_status() {
        let said = |word, status| outcome(status, &[("oncebox-outcome", word)]);
        assert_eq!(said("processed", 500), Outcome::Processed);
        assert_eq!(said("stale", 200), Outcome::Stale);
        assert_eq!(said("Retry", 200), AGAIN);
        assert_eq!(said("dead", 200), Outcome::Dead);
        assert_eq!(said("snooze", 200), Outcome::Snooze { after: SNOOZE });
        assert_eq!(said("done", 200), Outcome::Processed);
        assert_eq!(said("done", 500), AGAIN);
        let later = [("oncebox-outcome", "snooze"), ("retry-after", "600")];
        assert_eq!(outcome(200, &later), Outcome::Snooze { after: Duration::from_secs(600) });
    }

    #[test]
    fn reasons_are_kept_and_counted() {
        let early = [("oncebox-outcome", "retry"), ("oncebox-reason", "no such customer yet")];
        let verdict = answer(409, &early);
        assert_eq!(verdict.report.detail.as_deref(), Some("no such customer yet"));
        assert_eq!(verdict.reason.as_deref(), Some("no such customer yet"));
        let plain = answer(503, &[]);
        let detail = "answered 503 Service Unavailable: it broke";
        assert_eq!(plain.report.detail.as_deref(), Some(detail));
        assert_eq!(plain.reason.as_deref(), Some("status_503"));
        assert_eq!(answer(599, &[]).report.detail.as_deref(), Some("answered 599: it broke"));
        let done = answer(200, &[("oncebox-summary", "credited\t 5")]);
        assert_eq!((done.report.detail, done.reason), (None, None));
        assert_eq!(done.report.summary.as_deref(), Some("credited 5"));
    }

    #[test]
    fn texts_are_bounded_and_printable() {
        let long = "é".repeat(2000);
        assert!(bounded(&long, 1024).len() <= 1024);
        assert_eq!(bounded("a\u{1b}[31m\r\n\0b", 99), "a [31m b");
        assert_eq!(bounded(" \n ", 99), "");
    }
}
