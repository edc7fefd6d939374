//! One short line per decision and attempt, for a terminal: what `oncebox tail` and `oncebox dev`
//! show.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Claimed, Ending, Next, Reason, State};
use oncebox::receipt::ReceiptId;
use serde::{Deserialize, Serialize};

use crate::columns::{shorten, width};
use crate::escape::escape;
use crate::logs::{Attempt, Decided};

/// What was decided about a request, or how an attempt ended. The fields are the words of the
/// documentation and never renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// The outcome.
    pub outcome: String,
    /// The source, of a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The route, of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The type of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The provider's id of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// How many events, where a request carried several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Which attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The status that was answered: by us to a request, by the consumer to an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why, in a stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to check, or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When it is tried again, in milliseconds from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

impl Line {
    /// A line with the time and the outcome.
    pub fn new(outcome: impl Into<String>) -> Self {
        Self {
            at: SystemClock.now(),
            outcome: outcome.into(),
            source: None,
            route: None,
            event_type: None,
            event_id: None,
            receipt: None,
            events: None,
            attempt: None,
            status: None,
            reason: None,
            detail: None,
            retry_ms: None,
            took_ms: None,
        }
    }

    /// What was decided about a request.
    pub fn decided(decided: &Decided<'_>) -> Self {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Self {
            source: text(decided.source),
            event_type: text(decided.event_type),
            event_id: text(decided.event_id),
            receipt: decided.receipt.map(|receipt| receipt.to_string()),
            events: decided.batch.map(|counts| counts.iter().sum()),
            status: Some(decided.status),
            reason: text(decided.reason),
            detail: text(decided.hint),
            took_ms: Some(milliseconds(decided.took)),
            ..Self::new(decided.outcome.as_str())
        }
    }

    /// How an attempt ended.
    pub fn attempted(attempt: &Attempt<'_>) -> Self {
        let Attempt { route, claimed, next, report, took } = attempt;
        Self {
            status: report.status,
            detail: report.detail.clone(),
            retry_ms: retry(*next),
            took_ms: Some(milliseconds(*took)),
            ..Self::claimed(route, claimed, next.as_str())
        }
    }

    fn claimed(route: &str, claimed: &Claimed, outcome: &str) -> Self {
        Self {
            route: Some(route.to_owned()),
            event_type: Some(claimed.event_type.clone()),
            event_id: Some(claimed.event_id.clone()),
            receipt: Some(claimed.delivery.receipt.to_string()),
            attempt: Some(claimed.counts.attempts),
            ..Self::new(outcome)
        }
    }

    /// How an attempt of a worker that pulls ended.
    pub fn pulled(route: &str, ending: &Ending) -> Self {
        Self {
            route: Some(route.to_owned()),
            receipt: Some(ending.delivery.receipt.to_string()),
            detail: ending.detail.clone(),
            retry_ms: retry(ending.next),
            took_ms: Some(milliseconds(ending.took)),
            ..Self::new(ending.next.as_str())
        }
    }

    /// A delivery that was finished without an attempt.
    pub fn skipped(route: &str, receipt: ReceiptId, reason: Reason) -> Self {
        Self {
            route: Some(route.to_owned()),
            receipt: Some(receipt.to_string()),
            reason: Some(reason.as_str().to_owned()),
            ..Self::new("skipped")
        }
    }

    /// A delivery that is held after an attempt.
    pub fn held(route: &str, claimed: &Claimed, reason: Reason) -> Self {
        let reason = Some(reason.as_str().to_owned());
        Self { reason, ..Self::claimed(route, claimed, State::Held.as_str()) }
    }

    /// A delivery that is dead, since its last lease ran out.
    pub fn lost(route: Option<String>, receipt: ReceiptId) -> Self {
        let detail = Some("its worker was lost, and no attempt is left".to_owned());
        let receipt = Some(receipt.to_string());
        Self { route, receipt, detail, ..Self::new(State::Dead.as_str()) }
    }

    /// Lines that were too many to show.
    pub fn left_out(at: Timestamp, number: u64) -> Self {
        Self { at, events: Some(number), ..Self::new(LEFT_OUT) }
    }

    /// The line as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a line can be written as JSON")
    }

    /// The line as text of at most so many columns, the outcome in its colour if there is any.
    pub fn text(&self, columns: usize, colour: bool) -> String {
        let time = self.time();
        if self.outcome == LEFT_OUT {
            return format!("{time}  … {} more in this second", self.events.unwrap_or(0));
        }
        let place = match (&self.route, &self.source) {
            (Some(route), _) => format!("→ {}", escape(route)),
            (None, Some(source)) => escape(source).into_owned(),
            (None, None) => String::new(),
        };
        let outcome = escape(&self.outcome);
        let place = shorten(&place, PLACE);
        let gap = " ".repeat(PLACE.saturating_sub(width(&place)));
        let head = width(&time) + 2 + OUTCOME + 2 + PLACE + 2;
        let rest = shorten(&self.rest(), columns.saturating_sub(head).max(1));
        let word = format!("{outcome:OUTCOME$}");
        let word = match Colour::of_outcome(&outcome).filter(|_| colour) {
            Some(Colour(code)) => format!("\x1b[{code}m{word}\x1b[0m"),
            None => word,
        };
        format!("{time}  {word}  {place}{gap}  {rest}").trim_end().to_owned()
    }

    /// The time of day, as it is here.
    pub fn time(&self) -> String {
        self.at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
    }

    /// What is behind the columns that every line has: what it is about, and what was said of it.
    fn rest(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        words.extend(Some(self.told()).filter(|told| !told.is_empty()));
        let mut about = |text: &Option<String>| {
            words.extend(text.as_ref().map(|text| shorten(&escape(text), ABOUT)));
        };
        about(&self.event_type);
        about(&self.event_id);
        if self.event_id.is_none() {
            about(&self.receipt);
        }
        if let Some(events) = self.events {
            words.push(format!("{events} events"));
        }
        if let Some(detail) = self.detail.as_deref().filter(|detail| !detail.is_empty()) {
            let line = detail.split(['\r', '\n']).find(|line| !line.trim().is_empty());
            words.push(escape(line.unwrap_or_default().trim()).into_owned());
        }
        words.join("  ")
    }

    /// Which attempt it was, what was answered, why, and when it is tried again.
    fn told(&self) -> String {
        let mut told = String::new();
        if let (Some(attempt), true) = (self.attempt, self.route.is_some()) {
            let _ = write!(told, "#{attempt}");
        }
        if let (Some(status), true) = (self.status, self.route.is_some()) {
            let _ = write!(told, " {status}");
        }
        let is_over = self.route.is_some() && self.reason.is_none() && self.retry_ms.is_none();
        if let (Some(took), true) = (self.took_ms, is_over) {
            let _ = write!(told, " in {}", span(took));
        }
        if let Some(reason) = &self.reason {
            let _ = write!(told, " {}", escape(reason));
        }
        if let Some(retry) = self.retry_ms {
            let _ = write!(told, ", again in {}", span(retry.max(1_000)));
        }
        told.trim().to_owned()
    }
}

/// The outcome of a line that stands for others.
const LEFT_OUT: &str = "left_out";

/// Columns of an outcome; the longest is `unavailable`.
const OUTCOME: usize = 11;

/// Columns of a source or a route.
const PLACE: usize = 14;

/// The most that a type or an id takes of a line.
const ABOUT: usize = 28;

/// A colour of the terminal, by its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub &'static str);

impl Colour {
    /// What went well.
    pub const GOOD: Self = Self("32");
    /// What did not.
    pub const BAD: Self = Self("31");
    /// What waits.
    pub const WAITS: Self = Self("33");

    /// The colour of the outcome of a request or an attempt, or of a state. What is quite usual
    /// has none.
    pub fn of_outcome(word: &str) -> Option<Self> {
        match word {
            "accepted" | "processed" => Some(Self::GOOD),
            "rejected" | "malformed" | "unavailable" | "dead" => Some(Self::BAD),
            "retry" | "retrying" | "held" | "conflict" | "twin" | "damaged" | "lost" => {
                Some(Self::WAITS)
            }
            _ => None,
        }
    }
}

fn retry(next: Next) -> Option<u64> {
    match next {
        Next::Retry(pause) | Next::Snooze(pause) => Some(milliseconds(pause)),
        _ => None,
    }
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time by its largest unit.
fn span(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds}ms"),
        1_000..60_000 => format!("{}s", milliseconds / 1_000),
        60_000..3_600_000 => format!("{}m", milliseconds / 60_000),
        _ => format!("{}h", milliseconds / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(outcome: &str) -> Line {
        Line { at: Timestamp::UNIX_EPOCH, ..Line::new(outcome) }
    }

    #[test]
    fn a_line_is_short_whatever_it_says() {
        let long = "x".repeat(400);
        let wide = "漢".repeat(200);
        let signs = "\u{26a0}\u{fe0f}".repeat(90);
        for text in [long.as_str(), &wide, &signs, "a\x1b[2Jb\u{202e}c", "two\nlines"] {
            let some = || Some(text.to_owned());
            let line = Line {
                source: some(),
                event_type: some(),
                event_id: some(),
                reason: some(),
                detail: some(),
                ..line("rejected")
            };
            let shown = line.text(80, false);
            assert!(width(&shown) <= 80, "{shown}");
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            assert!(!shown.contains('\u{202e}'), "{shown:?}");
            assert_eq!(serde_json::from_str::<Line>(&line.to_json()).unwrap(), line);
        }
    }

    #[test]
    fn lines_tell_what_happened() {
        let accepted = Line {
            source: Some("stripe".into()),
            event_type: Some("invoice.paid".into()),
            event_id: Some("evt_1".into()),
            took_ms: Some(3),
            status: Some(202),
            ..line("accepted")
        };
        assert_eq!(
            &accepted.text(80, false)[8..],
            "  accepted     stripe          invoice.paid  evt_1"
        );
        let retry = Line {
            source: None,
            route: Some("billing".into()),
            attempt: Some(1),
            status: Some(503),
            retry_ms: Some(2_000),
            detail: Some("not yet awake".into()),
            ..accepted.clone()
        };
        let retry = Line { outcome: "retry".into(), ..retry };
        assert_eq!(
            &retry.text(100, false)[8..],
            "  retry        → billing       #1 503, again in 2s  invoice.paid  evt_1  not yet awake"
        );
        assert!(retry.text(80, true).contains("\x1b[33mretry      \x1b[0m"));
    }

    #[test]
    fn a_delivery_without_an_attempt_is_named_by_its_receipt() {
        let receipt: ReceiptId = "0199c2f0-7e4a-7c3b-9d53-0242ac120002".parse().unwrap();
        let skipped = Line::skipped("billing", receipt, Reason::Stale).text(100, false);
        assert_eq!(
            &skipped[8..],
            "  skipped      → billing       stale  0199c2f0-7e4a-7c3b-9d53-024…"
        );
        let lost = Line::lost(Some("billing".into()), receipt).text(120, false);
        assert_eq!(
            &lost[8..],
            "  dead         → billing       0199c2f0-7e4a-7c3b-9d53-024…  its worker was \
             lost, and no attempt is left"
        );
    }
}
