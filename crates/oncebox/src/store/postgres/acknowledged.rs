//! The receipts acknowledged last, so that a new primary can be asked for them.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use uuid::Uuid;

use crate::limits;
use crate::receipt::{Arrival, Recorded};

/// A bounded ring of receipts that were recorded here a short time ago.
#[derive(Default)]
pub(super) struct Acknowledged {
    ring: Mutex<VecDeque<(Instant, Uuid)>>,
}

impl Acknowledged {
    /// Notes the new receipts of a batch whose commit was answered.
    pub(super) fn note<'a>(
        &self,
        batch: &'a [Arrival],
        recorded: impl Iterator<Item = Option<&'a Recorded>>,
    ) {
        let now = Instant::now();
        let mut ring = self.ring.lock().expect("no panic while noting");
        for (arrival, recorded) in batch.iter().zip(recorded) {
            if recorded.is_some_and(|recorded| recorded.is_new()) {
                ring.push_back((now, arrival.receipt.as_uuid()));
            }
        }
        let over = ring.len().saturating_sub(limits::ACKNOWLEDGED_KEPT);
        ring.drain(..over);
    }

    /// The receipts in the ring that retention cannot have removed yet.
    pub(super) fn recent(&self) -> Vec<Uuid> {
        let ring = self.ring.lock().expect("no panic while noting");
        let recent = |at: &Instant| at.elapsed() < limits::ACKNOWLEDGED_FOR;
        ring.iter().filter(|(at, _)| recent(at)).map(|(_, receipt)| *receipt).collect()
    }
}
