//! How many bytes each source keeps, so that one of them cannot fill the disk for all.
//!
//! Counted in memory and written about once a second, like repeats; every node sees what the
//! others have written. The count is close, not exact: a crash may lose that second's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::receipt::SourceNo;
use crate::store::{Store, StoreError};

/// Bytes of headers and bodies, by source.
pub(crate) struct Stored {
    store: Arc<dyn Store>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// What the store said last.
    known: HashMap<SourceNo, i64>,
    /// What was recorded here since.
    pending: HashMap<SourceNo, i64>,
}

impl Stored {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, counts: Mutex::default() }
    }

    /// Counts bytes that were just recorded.
    pub(crate) fn note(&self, source: SourceNo, bytes: i64) {
        *self.counts().pending.entry(source).or_default() += bytes;
    }

    /// Bytes kept for a source, as far as is known here.
    pub(crate) fn bytes(&self, source: SourceNo) -> i64 {
        let counts = self.counts();
        let of = |bytes: &HashMap<SourceNo, i64>| bytes.get(&source).copied().unwrap_or(0);
        of(&counts.known) + of(&counts.pending)
    }

    /// Writes down what was counted and learns what others have.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let pending = std::mem::take(&mut self.counts().pending);
        if !pending.is_empty() {
            // In one order on every node, so that two flushes cannot deadlock.
            let mut bytes: Vec<_> = pending.into_iter().collect();
            bytes.sort_unstable_by_key(|(source, _)| *source);
            if let Err(error) = self.store.add_stored(bytes.clone()).await {
                // What may have been written must not be written again.
                if !matches!(error, StoreError::UnknownOutcome(_)) {
                    bytes.into_iter().for_each(|(source, bytes)| self.note(source, bytes));
                }
                return Err(error);
            }
        }
        let known = self.store.stored().await?;
        self.counts().known = known.into_iter().collect();
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("no panic while counting")
    }
}
