//! Holds a store against the ledger.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;
use oncebox::receipt::SourceNo;
use oncebox::store::{self, Purpose, Receipt, ReceiptFilter, ReceiptSummary, Store};
use sha2::{Digest as _, Sha256};

use crate::bed::{ROUTE, Run, SOURCE, body};
use crate::chance::Chance;
use crate::load::Ledger;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Acknowledged, and not there.
    Lost(String),
    /// There more than once.
    Twice(String),
    /// There under another receipt than the acknowledgement named.
    OtherReceipt(String),
    /// There, and nobody has sent it.
    NeverSent(String),
    /// There, with another body than was sent.
    OtherBody(String),
    /// There without its delivery, or with more than that.
    HalfRow(String),
    /// An answer that should not have been given.
    Answer(String),
}

/// Runs a future to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("build a runtime");
    runtime.block_on(future)
}

/// One row of a list of receipts.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) event_id: String,
    pub(crate) receipt: String,
    pub(crate) duplicates: u64,
    deliveries: Vec<(String, String)>,
}

impl From<ReceiptSummary> for Row {
    fn from(summary: ReceiptSummary) -> Self {
        let deliveries = summary.deliveries.into_iter();
        Self {
            event_id: summary.event_id,
            receipt: summary.receipt.to_string(),
            duplicates: summary.repeats.map_or(0, |repeats| repeats.duplicates.into()),
            deliveries: deliveries.map(|delivery| (delivery.route, delivery.state)).collect(),
        }
    }
}

/// Every receipt, as the library lists them.
pub(crate) fn rows(url: &str) -> Vec<Row> {
    block_on(async { list(&*open(url).await, None).await })
}

/// Every receipt, as `oncebox receipts list --all --json` prints them.
pub(crate) fn rows_printed(run: &Run) -> Vec<Row> {
    assert_eq!(run.code, Some(0), "{run}");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let row = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        let deliveries = row["deliveries"].as_array().expect("a list").iter();
        let deliveries = deliveries.map(|each| (text(&each["route"]), text(&each["state"])));
        Row {
            event_id: text(&row["event_id"]),
            receipt: text(&row["receipt"]),
            duplicates: row["duplicates"].as_u64().expect("a number"),
            deliveries: deliveries.collect(),
        }
    };
    run.stdout.lines().map(row).collect()
}

/// Bodies compared at most when everything is checked. A list shows the rest.
const BODIES: usize = 2000;

/// Holds everything in the store at `url` against the ledger.
pub(crate) fn check(ledger: &Ledger, url: &str) -> Vec<Broken> {
    block_on(async {
        let store = open(url).await;
        let rows = list(&*store, None).await;
        let acknowledged = ledger.acknowledged(0);
        let mut broken = check_rows(ledger, &rows, &acknowledged);
        let each = acknowledged.len() / BODIES + 1;
        let some: Vec<_> = acknowledged.into_iter().step_by(each).collect();
        broken.extend(check_kept(ledger, &*store, &some).await);
        broken
    })
}

/// As [`check`], but only what was received since a time, and `older` earlier ones by chance.
pub(crate) fn check_since(
    ledger: &Ledger,
    url: &str,
    (since, first): (Timestamp, usize),
    chance: &mut Chance,
    older: usize,
) -> Vec<Broken> {
    block_on(async {
        let store = open(url).await;
        let acknowledged = ledger.acknowledged(0);
        let mut looked_at = acknowledged[first..].to_vec();
        if first > 0 {
            looked_at.extend((0..older).map(|_| acknowledged[chance.below(first)].clone()));
        }
        let rows = list(&*store, Some(since)).await;
        let mut broken = check_rows(ledger, &rows, &[]);
        broken.extend(check_kept(ledger, &*store, &looked_at).await);
        broken
    })
}

/// Asserts that no promise was broken.
#[track_caller]
pub(crate) fn assert_kept(broken: &[Broken], ledger: &Ledger) {
    let shown = &broken[..broken.len().min(20)];
    let (count, answers) = (broken.len(), ledger.answers());
    assert!(broken.is_empty(), "{count} promises broken after {answers:?}: {shown:?}");
}

/// What can be told from a list: identities, receipts, deliveries.
pub(crate) fn check_rows(ledger: &Ledger, rows: &[Row], expected: &[String]) -> Vec<Broken> {
    let sent = ledger.sent();
    let mut broken: Vec<Broken> = ledger.wrong().into_iter().map(Broken::Answer).collect();
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for row in rows {
        let id = row.event_id.clone();
        if seen.insert(&row.event_id, &row.receipt).is_some() {
            broken.push(Broken::Twice(id.clone()));
        }
        match sent.get(&id) {
            None => broken.push(Broken::NeverSent(id.clone())),
            Some(Some(receipt)) if *receipt != row.receipt => {
                broken.push(Broken::OtherReceipt(id.clone()));
            }
            Some(_) => {}
        }
        if row.deliveries != [(ROUTE.to_owned(), "received".to_owned())] {
            broken.push(Broken::HalfRow(id));
        }
    }
    let lost = expected.iter().filter(|id| !seen.contains_key(id.as_str()));
    broken.extend(lost.cloned().map(Broken::Lost));
    broken
}

/// Looks up each id as a retry would, and compares what is kept of it with what was sent.
async fn check_kept(ledger: &Ledger, store: &dyn Store, ids: &[String]) -> Vec<Broken> {
    let sent = ledger.sent();
    let sources = store.sources().await.expect("a list of sources");
    let source = sources.iter().find(|(_, name)| name == SOURCE).map(|(number, _)| *number);
    let mut broken = Vec::new();
    for id in ids {
        let kept = match source {
            Some(source) => kept(store, source, id).await,
            None => None,
        };
        let Some(kept) = kept else {
            broken.push(Broken::Lost(id.clone()));
            continue;
        };
        if sent[id] != Some(kept.summary.receipt.to_string()) {
            broken.push(Broken::OtherReceipt(id.clone()));
        }
        let intact = <[u8; 32]>::from(Sha256::digest(&kept.body)) == kept.digest;
        if kept.summary.event_id != *id || kept.body != body(id) || !intact {
            broken.push(Broken::OtherBody(id.clone()));
        }
    }
    broken
}

async fn kept(store: &dyn Store, source: SourceNo, id: &str) -> Option<Receipt> {
    let receipt = store.identity(source, id).await.expect("a look-up")?;
    store.receipt(receipt).await.expect("a look-up")
}

async fn open(url: &str) -> Arc<dyn Store> {
    let opened = store::open(url, Purpose::Operate).await;
    opened.unwrap_or_else(|error| panic!("cannot look into {url}: {error}"))
}

async fn list(store: &dyn Store, since: Option<Timestamp>) -> Vec<Row> {
    let mut filter = ReceiptFilter { since, limit: 1000, ..ReceiptFilter::default() };
    let mut rows = Vec::new();
    loop {
        let page = store.receipts(&filter).await.expect("a list of receipts");
        let Some(last) = page.last() else { return rows };
        filter.before = Some(last.receipt);
        rows.extend(page.into_iter().map(Row::from));
    }
}
