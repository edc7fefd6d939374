//! Bringing a batch to an outcome for each of its arrivals, whatever the store does.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{error, warn};

use super::{Refused, Shared};
use crate::limits;
use crate::receipt::{Arrival, Recorded};
use crate::store::StoreError;

/// Records a batch and tells what came of each arrival. `ends` says where the arrivals of each
/// sender end.
///
/// One bad row must not fail its neighbours: a batch that the database refuses is recorded in
/// halves, and those again, down to the row itself. It is cut between senders as long as there
/// are two, so that a request is committed as a whole unless the bad row is its own.
pub(super) async fn settle(
    shared: &Shared,
    batch: &Arc<[Arrival]>,
    ends: &[usize],
) -> Vec<Result<Recorded, Refused>> {
    let mut outcomes = vec![Err(Refused::StoreDown); batch.len()];
    let whole = 0..batch.len();
    let mut open = vec![whole];
    while let Some(range) = open.pop() {
        let events = range.len();
        let some = match events == batch.len() {
            true => batch.clone(),
            false => Arc::from(&batch[range.clone()]),
        };
        let outcome = record_surely(shared, some).await;
        if outcome.is_ok() {
            shared.pulse.beat();
        }
        let reason = outcome.as_ref().err().map(|error| (Instant::now(), error.to_string()));
        *shared.trouble.lock().expect("no panic while noting") = reason;
        let outcomes = &mut outcomes[range.clone()];
        match outcome {
            Ok(recorded) => {
                outcomes.iter_mut().zip(recorded).for_each(|(outcome, known)| *outcome = Ok(known));
            }
            Err(StoreError::Data(reason)) if events > 1 => {
                warn!(%reason, events, "the database refused a batch; recording it in halves");
                let cut = halfway(&range, ends);
                open.extend([cut..range.end, range.start..cut]);
            }
            Err(StoreError::Data(reason)) => {
                warn!(%reason, "the database refused an event");
                outcomes.fill(Err(Refused::Unstorable));
            }
            // An event that is known to be kept is never refused for its neighbours' sake.
            Err(StoreError::Partly { recorded, reason }) => {
                warn!(%reason, events, "only part of a batch was recorded");
                let known = recorded.into_iter().map(|known| known.ok_or(Refused::StoreDown));
                outcomes.iter_mut().zip(known).for_each(|(outcome, known)| *outcome = known);
            }
            // What is left would meet the same store.
            Err(error) => {
                warn!(%error, events, "a batch could not be recorded");
                break;
            }
        }
    }
    outcomes
}

/// Where to cut a part of a batch: between two senders, as near to its middle as may be, or in
/// the middle of the only one.
fn halfway(range: &Range<usize>, ends: &[usize]) -> usize {
    let middle = range.start + range.len() / 2;
    let inside = ends.iter().copied().filter(|end| range.start < *end && *end < range.end);
    inside.min_by_key(|end| end.abs_diff(middle)).unwrap_or(middle)
}

/// Records a batch; a commit with an unknown outcome is asked about by recording it again under
/// the same receipt ids. If the answer cannot be had in time the senders are told to retry, and
/// the identity absorbs what was committed after all.
async fn record_surely(
    shared: &Shared,
    batch: Arc<[Arrival]>,
) -> Result<Vec<Recorded>, StoreError> {
    let mut pause = Duration::from_millis(50);
    for _ in 0..limits::RECHECKS {
        match shared.store.record(batch.clone()).await {
            Err(StoreError::UnknownOutcome(reason)) => {
                warn!(%reason, events = batch.len(), "commit outcome unknown; asking again");
                tokio::time::sleep(pause).await;
                pause *= 4;
            }
            Err(StoreError::Fatal(reason)) => {
                error!(%reason, "the store has failed; refusing everything until a restart");
                shared.failed.send_replace(Some(reason.clone()));
                return Err(StoreError::Fatal(reason));
            }
            outcome => return outcome,
        }
    }
    Err(StoreError::Unavailable("the outcome of a commit stayed unknown".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_cut_between_senders() {
        assert_eq!(halfway(&(0..4), &[1, 2, 3, 4]), 2);
        assert_eq!(halfway(&(0..5), &[4, 5]), 4);
        assert_eq!(halfway(&(0..10), &[1, 9, 10]), 1);
        assert_eq!(halfway(&(4..10), &[4, 10]), 7, "one sender alone is cut in its middle");
        assert_eq!(halfway(&(4..6), &[4, 10]), 5);
    }
}
