//! Counting repeated deliveries without turning a retry storm into a write storm.
//!
//! Every repeat was answered after a synced commit; only its count is kept in memory for about a
//! second and then written together with the others. A crash may lose the counts of that second,
//! never an event.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::limits;
use crate::receipt::{ReceiptId, Recorded};
use crate::store::{Repeat, Store, StoreError};

/// Repeats that were counted and not yet written.
pub(crate) struct Repeats {
    store: Arc<dyn Store>,
    pending: Mutex<HashMap<ReceiptId, Repeat>>,
    crowd: Notify,
}

impl Repeats {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, pending: Mutex::default(), crowd: Notify::new() }
    }

    /// Counts an arrival with the receipt it repeats, or that came first.
    pub(crate) fn note(&self, recorded: Recorded, at: Timestamp) {
        let one = |receipt| Repeat {
            receipt,
            duplicates: 0,
            conflicts: 0,
            twins: 0,
            first_at: at,
            last_at: at,
        };
        let repeat = match recorded {
            Recorded::Accepted | Recorded::NoRoom => return,
            Recorded::Duplicate { receipt } => Repeat { duplicates: 1, ..one(receipt) },
            Recorded::Conflict { first } => Repeat { conflicts: 1, ..one(first) },
            Recorded::Twin { first } => Repeat { twins: 1, ..one(first) },
        };
        let mut pending = self.pending.lock().expect("no panic while counting");
        // While a flush waits for the store, counts may be lost; memory is not.
        let room = pending.len() < limits::REPEATS_HELD;
        if room || pending.contains_key(&repeat.receipt) {
            add(&mut pending, repeat);
        }
        if pending.len() >= limits::REPEATS_PENDING {
            self.crowd.notify_one();
        }
    }

    /// Resolves when enough different receipts repeat that waiting longer would hold too many.
    pub(crate) async fn crowded(&self) {
        self.crowd.notified().await;
    }

    /// Writes down what was counted. On failure it is kept for the next time.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let mut repeats: Vec<Repeat> = {
            let mut pending = self.pending.lock().expect("no panic while counting");
            std::mem::take(&mut *pending).into_values().collect()
        };
        if repeats.is_empty() {
            return Ok(());
        }
        // In one order on every node, so that two flushes of the same receipts cannot deadlock.
        repeats.sort_unstable_by_key(|repeat| repeat.receipt);
        let outcome = self.store.add_repeats(repeats.clone()).await;
        // What may have been written must not be written again: counts may lose, never double.
        if outcome.as_ref().is_err_and(|error| !matches!(error, StoreError::UnknownOutcome(_))) {
            let mut pending = self.pending.lock().expect("no panic while counting");
            let room = limits::REPEATS_HELD.saturating_sub(pending.len());
            repeats.into_iter().take(room).for_each(|repeat| add(&mut pending, repeat));
        }
        outcome
    }
}

fn add(pending: &mut HashMap<ReceiptId, Repeat>, more: Repeat) {
    pending
        .entry(more.receipt)
        .and_modify(|sum| {
            sum.duplicates += more.duplicates;
            sum.conflicts += more.conflicts;
            sum.twins += more.twins;
            sum.first_at = sum.first_at.min(more.first_at);
            sum.last_at = sum.last_at.max(more.last_at);
        })
        .or_insert(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::ReceiptMint;
    use crate::store::NothingStore;

    #[tokio::test]
    async fn repeats_that_cannot_be_written_do_not_fill_the_memory() {
        let repeats = Repeats::new(Arc::new(NothingStore::default()));
        let (mint, at) = (ReceiptMint::default(), Timestamp::UNIX_EPOCH);
        for _ in 0..2 * limits::REPEATS_HELD {
            repeats.note(Recorded::Duplicate { receipt: mint.mint(at) }, at);
        }
        assert_eq!(repeats.pending.lock().unwrap().len(), limits::REPEATS_HELD);
    }
}
