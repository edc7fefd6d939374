//! Compares what senders were told with what the surviving primary holds. It reads tables with
//! plain SQL and uses no code of the product.

use std::collections::HashMap;

use oncebox_testkit::postgres;

use crate::load::Ledger;

/// How many events were lost or doubled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Told 2xx with a receipt that is not stored under the event's id.
    pub(crate) lost: Vec<String>,
    /// Stored under several receipts, or delivered more than once.
    pub(crate) doubled: Vec<String>,
    /// Answers that contradict each other.
    pub(crate) wrong: Vec<String>,
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.wrong.is_empty()
    }
}

/// Compares the ledger of the senders with the primary at `url`.
pub(crate) fn compare(ledger: &Ledger, url: &str) -> Verdict {
    let stored = stored(url);
    let one = |event: &&String| stored.get(*event).is_some_and(|receipts| receipts.len() > 1);
    let mut verdict = Verdict {
        lost: Vec::new(),
        doubled: stored.keys().filter(one).cloned().collect(),
        wrong: ledger.wrong(),
    };
    for (event, told) in ledger.sent() {
        let Some(told) = told else { continue };
        if !stored.get(&event).is_some_and(|receipts| receipts.contains(&told)) {
            verdict.lost.push(event);
        }
    }
    verdict
}

/// Stored receipts by event id, one entry for each delivery of a receipt.
fn stored(url: &str) -> HashMap<String, Vec<String>> {
    let rows = postgres::query(
        url,
        "SELECT r.event_id, r.id FROM oncebox.receipts r
         LEFT JOIN oncebox.deliveries d ON d.receipt = r.id",
    );
    let mut stored: HashMap<String, Vec<String>> = HashMap::new();
    for (event, receipt) in rows.lines().filter_map(|row| row.split_once('|')) {
        stored.entry(event.to_owned()).or_default().push(receipt.to_owned());
    }
    stored
}
