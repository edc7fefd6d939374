//! What became of a receipt: its deliveries, and every attempt of each.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oncebox::delivery::DeliveryId;
use oncebox::receipt::ReceiptId;
use oncebox::store::{AttemptRow, Behind, DeliveryFilter, DeliveryRow, Store};
use serde_json::{Value, json};

use super::both;
use crate::cmd::deliveries::as_json;
use crate::cmd::deliveries::view::{Routes, Shown};
use crate::exit::Failure;
use crate::output::{Screen, absolute, count, escape, escape_note};

/// More deliveries than a receipt can have.
const ALL: usize = i16::MAX as usize;

/// The deliveries of a receipt and what became of them.
pub(crate) struct History {
    deliveries: Vec<(DeliveryRow, Shown)>,
    attempts: Vec<AttemptRow>,
}

impl History {
    pub(crate) async fn load(
        store: &Arc<dyn Store>,
        routes: &Routes,
        receipt: ReceiptId,
    ) -> Result<Self, Failure> {
        let filter =
            DeliveryFilter { receipt: Some(receipt), limit: ALL, ..DeliveryFilter::default() };
        let mut rows = store.deliveries(&filter).await?;
        rows.sort_by(|a, b| a.route.cmp(&b.route));
        let shown = |row: DeliveryRow| {
            let shown = routes.shown_of(&row);
            (row, shown)
        };
        let deliveries = rows.into_iter().map(shown).collect();
        Ok(Self { deliveries, attempts: store.attempts(receipt).await? })
    }

    /// One delivery, if it is there.
    pub(crate) async fn of_delivery(
        store: &Arc<dyn Store>,
        routes: &Routes,
        delivery: DeliveryId,
    ) -> Result<Self, Failure> {
        let mut history = Self::load(store, routes, delivery.receipt).await?;
        history.deliveries.retain(|(row, _)| row.delivery == delivery);
        Ok(history)
    }

    /// The only delivery of it, if there is one.
    pub(crate) fn only(&self) -> Option<(&DeliveryRow, Shown)> {
        self.deliveries.first().map(|(row, shown)| (row, *shown))
    }

    fn attempts_of(&self, row: &DeliveryRow) -> impl Iterator<Item = &AttemptRow> {
        self.attempts.iter().filter(|attempt| attempt.route == row.route)
    }

    pub(crate) fn print(&self, screen: &mut Screen, now: Timestamp) -> Result<(), Failure> {
        if self.deliveries.is_empty() {
            screen.line(format!("{:11} none: unrouted", "deliveries"))?;
        }
        for (row, shown) in &self.deliveries {
            screen.line(format!("{:11} {}", "delivery", in_words(row, *shown)))?;
            for (label, text) in details(row, now) {
                screen.line(format!("{:11}   {label:9} {text}", ""))?;
            }
            for attempt in self.attempts_of(row) {
                screen.line(format!("{:11}   {:9} {}", "", "attempt", told(attempt)))?;
            }
        }
        Ok(())
    }

    /// The deliveries with their attempts; the fields are never renamed.
    pub(crate) fn as_json(&self) -> Value {
        let deliveries = self.deliveries.iter().map(|(row, shown)| {
            let mut object = as_json(row, *shown);
            object["history"] = self.attempts_of(row).map(attempt_as_json).collect();
            object
        });
        deliveries.collect()
    }
}

fn in_words(row: &DeliveryRow, shown: Shown) -> String {
    let counts = row.counts;
    let attempts = count(counts.attempts as usize, "attempt");
    let mut text = format!("{}: {shown}, {attempts}", escape(&row.route));
    let others = [
        (counts.failures, "failure"),
        (counts.crashes, "crash"),
        (counts.snoozes, "snooze"),
        (row.replays, "replay"),
    ];
    for (number, noun) in others.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str(", ");
        text.push_str(&count(number as usize, noun));
    }
    text
}

/// What else there is to say of a delivery, each under a label.
fn details(row: &DeliveryRow, now: Timestamp) -> Vec<(&'static str, String)> {
    let text = |text: &Option<String>| text.as_deref().map(|text| escape(text).into_owned());
    let note = |text: &Option<String>| text.as_deref().map(escape_note);
    let time = |time: Option<Timestamp>| time.map(|time| both(time, now));
    let details = [
        ("id", Some(row.delivery.to_string())),
        ("due", time(row.due_at)),
        ("leased to", text(&row.worker)),
        ("until", time(row.lease_until)),
        ("finished", time(row.finished_at)),
        ("waits for", text(&row.waits_for)),
        ("behind", row.behind.as_ref().map(behind)),
        ("detail", note(&row.detail)),
        ("summary", note(&row.summary)),
        ("first", row.first.map(|first| format!("{first} was the same operation"))),
    ];
    details.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
}

/// The delivery that one is held behind.
fn behind(behind: &Behind) -> String {
    format!("{}, receipt {}, {}", escape(&behind.event_id), behind.receipt, behind.state)
}

/// An attempt in one line: its number, when it ended, how long it took, and how it ended.
fn told(attempt: &AttemptRow) -> String {
    let replay = match attempt.replays {
        0 => String::new(),
        number => format!(" of replay {number}"),
    };
    let took = attempt.took.map_or_else(|| "unknown".to_owned(), took);
    let status = attempt.status.map(|status| format!(" {status}")).unwrap_or_default();
    let detail = attempt.detail.as_deref().map(|detail| format!(": {}", escape_note(detail)));
    format!(
        "{}{replay}, {}, took {took}, {}{status}{}",
        attempt.number,
        absolute(attempt.ended_at),
        escape(&attempt.outcome),
        detail.unwrap_or_default()
    )
}

/// A short time, in milliseconds or seconds.
fn took(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        return format!("{}ms", time.as_millis());
    }
    format!("{}s", time.as_secs())
}

fn attempt_as_json(attempt: &AttemptRow) -> Value {
    json!({
        "number": attempt.number,
        "replay": attempt.replays,
        "ended_at": attempt.ended_at.to_string(),
        "took_ms": attempt.took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        "outcome": attempt.outcome,
        "status": attempt.status,
        "detail": attempt.detail,
    })
}
