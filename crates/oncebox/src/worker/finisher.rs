//! Endings, committed together: whatever ended while the last commit ran is the next batch. One
//! that cannot be written now is set aside alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::{debug, error, warn};

use super::aside::set_aside;
use super::chance::Backoff;
use super::{Report, Shared, Told, WorkRoute};
use crate::delivery::{Claimed, Ending, Next};
use crate::limits::{CLAIM_ROWS, RECHECKS};
use crate::store::{Finish, StoreError};

/// An attempt that ended, on its way into the store.
pub(super) struct Ended {
    pub(super) claimed: Claimed,
    pub(super) route: Arc<WorkRoute>,
    pub(super) report: Report,
    pub(super) next: Next,
    pub(super) took: Duration,
}

impl Ended {
    pub(super) fn ending(&self) -> Ending {
        Ending {
            delivery: self.claimed.delivery,
            lease: self.claimed.lease,
            next: self.next,
            took: self.took,
            status: self.report.status,
            detail: self.report.detail.clone(),
            summary: self.report.summary.clone(),
            guarded: self.claimed.guarded,
        }
    }
}

/// Commits endings until the worker is gone.
pub(super) async fn run(shared: Arc<Shared>, mut endings: mpsc::Receiver<Ended>) {
    let mut batch = Vec::with_capacity(CLAIM_ROWS);
    while endings.recv_many(&mut batch, CLAIM_ROWS).await > 0 {
        settle(&shared, std::mem::take(&mut batch)).await;
    }
}

/// Brings each ending of a batch to the store, or says in the log what was lost.
pub(super) async fn settle(shared: &Arc<Shared>, batch: Vec<Ended>) {
    let Err((batch, reason)) = finish_surely(shared, batch).await else { return };
    // One bad row must not fail its neighbours: each gets a transaction of its own.
    warn!(%reason, endings = batch.len(), "the database refused endings; one by one");
    for ended in batch {
        let Err((refused, reason)) = finish_surely(shared, vec![ended]).await else { continue };
        for mut ended in refused {
            warn!(%reason, delivery = %ended.claimed.delivery, "finishing it without its texts");
            ended.report.detail = None;
            ended.report.summary = None;
            if let Err((refused, reason)) = finish_surely(shared, vec![ended]).await {
                refused.iter().for_each(|ended| abandon(shared, ended, &reason));
            }
        }
    }
}

/// Finishes a batch in one transaction; if the store does not answer, for as long as the leases
/// should be good. An unknown outcome is asked about by finishing again: what this lease has
/// finished before is not done twice. Only what the database refuses comes back.
async fn finish_surely(
    shared: &Arc<Shared>,
    mut batch: Vec<Ended>,
) -> Result<(), (Vec<Ended>, String)> {
    let mut backoff = Backoff::new();
    while !batch.is_empty() {
        let endings = batch.iter().map(Ended::ending).collect();
        let error = match shared.store.finish(endings).await {
            Ok(each) => {
                settle_each(shared, batch, each).await;
                return Ok(());
            }
            Err(StoreError::Data(reason)) => return Err((batch, reason)),
            Err(error) => error,
        };
        shared.note_failure(&error);
        let now = Instant::now();
        let too_late = shared.finish_by.get().is_some_and(|by| *by <= now);
        let hopeless = too_late || matches!(error, StoreError::Fatal(_));
        batch.retain(|ended| {
            let keep = !hopeless && shared.leases.is_good(&ended.claimed, now);
            if !keep {
                abandon(shared, ended, &error.to_string());
            }
            keep
        });
        if !batch.is_empty() {
            warn!(%error, endings = batch.len(), "endings could not be written yet");
            tokio::time::sleep(backoff.pause()).await;
        }
    }
    Ok(())
}

/// Takes note of what came of a batch. A consumer that ended an attempt itself, and does not know
/// whether that was committed, has ended it by the outcome now if it was not.
pub(super) async fn settle_each(shared: &Arc<Shared>, batch: Vec<Ended>, each: Vec<Finish>) {
    let mut doubtful = Vec::new();
    for (ended, finish) in batch.into_iter().zip(each) {
        match (finish, ended.report.told) {
            (Finish::Locked, _) => set_aside(shared, ended),
            (Finish::Lost, Told::Perhaps(next)) => doubtful.push(Ended { next, ..ended }),
            (finish, _) => settled(shared, &ended, finish),
        }
    }
    if !doubtful.is_empty() {
        find_out(shared, doubtful).await;
    }
}

/// Asks whether attempts were ended by their consumers. Nothing depends on it but what is told:
/// whatever was committed is so.
async fn find_out(shared: &Shared, mut doubtful: Vec<Ended>) {
    doubtful.iter_mut().for_each(|ended| ended.report.detail = None);
    let endings: Vec<Ending> = doubtful.iter().map(Ended::ending).collect();
    let mut backoff = Backoff::new();
    for _ in 0..=RECHECKS {
        match shared.store.were_ended(&endings).await {
            Ok(each) => {
                for (ended, before) in doubtful.iter().zip(each) {
                    let finish = if before { Finish::Before } else { Finish::Lost };
                    settled(shared, ended, finish);
                }
                return;
            }
            Err(error) => warn!(%error, "whether attempts were ended is not known yet"),
        }
        tokio::time::sleep(backoff.pause()).await;
    }
    for ended in doubtful {
        abandon(shared, &ended, "whether it was committed is not known");
    }
}

/// The store has decided. What it says was ended before was ended by us, in a commit whose outcome
/// was unknown.
pub(super) fn settled(shared: &Shared, ended: &Ended, finish: Finish) {
    let Ended { claimed, route, report, next, took } = ended;
    if !finish.is_good() {
        shared.lease_lost(route, claimed, "before its outcome was written down");
        return;
    }
    log(ended);
    if *next == Next::Damaged {
        shared.options.observer.damaged(&route.name, claimed);
    } else if *next != Next::Return {
        shared.options.observer.attempted(&route.name, claimed, *next, report, *took);
        if route.rules.misses_version(claimed) {
            shared.options.observer.unversioned(&route.name, claimed);
        }
    }
    if let Next::Retry(pause) | Next::Snooze(pause) = next {
        shared.later.note(Instant::now() + *pause);
        shared.freed.notify_one();
    }
    shared.leases.let_go(claimed);
}

fn log(ended: &Ended) {
    let Ended { claimed, route, report, next, took } = ended;
    let (route, delivery, receipt) = (&*route.name, claimed.delivery, claimed.delivery.receipt);
    let (outcome, attempt) = (next.as_str(), claimed.counts.attempts);
    let (took_ms, status) = (took.as_millis(), report.status);
    let detail = report.detail.as_deref();
    // Whoever observes the worker says it louder, with what it knows of the event.
    debug!(
        route, %delivery, %receipt, outcome, attempt, status, took_ms, detail,
        "an attempt ended"
    );
}

/// An outcome that could not be written down. The delivery comes again when its lease runs out,
/// under the same key.
pub(super) fn abandon(shared: &Shared, ended: &Ended, reason: &str) {
    let (claimed, outcome) = (&ended.claimed, ended.next.as_str());
    let (delivery, receipt) = (claimed.delivery, claimed.delivery.receipt);
    error!(
        route = &*ended.route.name, %delivery, %receipt, outcome, reason,
        "an outcome was lost; the delivery will be tried again"
    );
    shared.leases.let_go(claimed);
}
