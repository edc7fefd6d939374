//! Answers that wait for an outcome: `ack = "processed"`.
//!
//! Whoever waits looks at the store, which alone knows. The worker of this process says when it
//! is worth a look; what another process does is found by looking now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oncebox::delivery::{DeliveryId, Reason, State};
use oncebox::limits::ACK_ATTEMPTS;
use oncebox::receipt::ReceiptId;
use oncebox::store::{Standing, Store, StoreError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How soon the store is looked at again when nobody said that it is worth it: at first, and at
/// most, once it has turned out to take long. Looks take connections that deliveries need.
const LOOK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How an event that was waited for stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was processed.
    Processed,
    /// It was skipped.
    Skipped,
    /// It was given up.
    Dead,
    /// It failed and will be tried again, or takes longer than anybody wants to wait.
    NotYet,
    /// It has failed so often that the sender need not try any more: the attempts go on.
    Retrying,
}

impl Settled {
    /// The word for it in an answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Skipped => "skipped",
            Self::Dead => "dead",
            Self::NotYet => "not_processed",
            Self::Retrying => "retrying",
        }
    }
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Whether the event has just come in for the first time. A copy joins what is under way, and
    /// makes a retry due that is not.
    pub is_new: bool,
    /// A copy hastens a retry at most this often.
    pub base: Duration,
    /// Until when.
    pub until: Instant,
}

/// Everybody who waits for an outcome.
#[derive(Debug, Default)]
pub struct Awaited {
    waiting: Mutex<HashMap<ReceiptId, (usize, Arc<Notify>)>>,
}

impl Awaited {
    /// Says that something happened to a receipt.
    pub fn wake(&self, receipt: ReceiptId) {
        let waiting = self.waiting.lock().expect("no panic while waking");
        if let Some((_, notify)) = waiting.get(&receipt) {
            notify.notify_waiters();
        }
    }

    /// Waits for the outcome of a delivery. None if there is no such delivery, or if it is held as
    /// twin or conflict.
    pub async fn settle(&self, store: &dyn Store, wanted: Wanted) -> Option<Settled> {
        let waiter = self.wait_for(wanted.delivery.receipt);
        let mut ended_before = wanted.is_new.then_some(0);
        let mut pause = LOOK.0;
        loop {
            // Before the look: what happens after it wakes us.
            let woken = waiter.notify.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let look = tokio::time::timeout_at(wanted.until, look(store, &wanted, ended_before));
            match look.await {
                Ok(Ok(None)) => return None,
                // An operator decides about it: no sender waits for that.
                Ok(Ok(Some(standing))) if is_odd(&standing) => return None,
                Ok(Ok(Some(standing))) => {
                    let before = *ended_before.get_or_insert_with(|| ended(&standing));
                    if let Some(settled) = settled(&standing, before) {
                        return Some(settled);
                    }
                }
                // The store may be back before the time is up.
                Ok(Err(_)) => {}
                Err(_) => return Some(Settled::NotYet),
            }
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep(pause) => {}
                () = tokio::time::sleep_until(wanted.until) => return Some(Settled::NotYet),
            }
            pause = (pause * 2).min(LOOK.1);
        }
    }

    fn wait_for(&self, receipt: ReceiptId) -> Waiter<'_> {
        let mut waiting = self.waiting.lock().expect("no panic while waiting");
        let (count, notify) = waiting.entry(receipt).or_default();
        *count += 1;
        Waiter { awaited: self, receipt, notify: notify.clone() }
    }
}

/// Looks where a delivery stands; the first look of a copy makes a retry due.
async fn look(
    store: &dyn Store,
    wanted: &Wanted,
    ended_before: Option<u32>,
) -> Result<Option<Standing>, StoreError> {
    let standing = store.standing(wanted.delivery).await?;
    let waits = standing.is_some_and(|standing| {
        standing.state == State::Retrying && ended(&standing) < ACK_ATTEMPTS
    });
    if ended_before.is_none() && waits {
        store.hasten(wanted.delivery, wanted.base).await?;
    }
    Ok(standing)
}

/// Whether a delivery is held as twin or conflict.
fn is_odd(standing: &Standing) -> bool {
    matches!(standing.reason, Some(Reason::Twin | Reason::Conflict))
}

/// How many attempts have ended.
fn ended(standing: &Standing) -> u32 {
    let under_way = u32::from(standing.state == State::Processing);
    standing.attempts.saturating_sub(under_way)
}

/// What a standing means to those who came when so many attempts had ended.
fn settled(standing: &Standing, ended_before: u32) -> Option<Settled> {
    match standing.state {
        State::Processed => Some(Settled::Processed),
        State::Skipped => Some(Settled::Skipped),
        State::Dead => Some(Settled::Dead),
        _ if ended_before >= ACK_ATTEMPTS => Some(Settled::Retrying),
        // One has failed since, whether or not the next is under way already.
        _ if ended(standing) > ended_before => Some(Settled::NotYet),
        State::Received | State::Processing | State::Retrying | State::Held => None,
    }
}

/// One who waits, and is forgotten when it does not any more.
struct Waiter<'a> {
    awaited: &'a Awaited,
    receipt: ReceiptId,
    notify: Arc<Notify>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.awaited.waiting.lock().expect("no panic while waiting");
        if let Some((count, _)) = waiting.get_mut(&self.receipt) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.receipt);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(state: State, attempts: u32) -> Standing {
        Standing { state, reason: None, attempts }
    }

    #[test]
    fn whoever_waits_hears_of_the_next_end() {
        assert_eq!(settled(&at(State::Received, 0), 0), None);
        assert_eq!(settled(&at(State::Processing, 1), 0), None);
        assert_eq!(settled(&at(State::Retrying, 1), 0), Some(Settled::NotYet));
        assert_eq!(settled(&at(State::Processing, 2), 0), Some(Settled::NotYet));
        assert_eq!(settled(&at(State::Processed, 1), 0), Some(Settled::Processed));
        assert_eq!(settled(&at(State::Skipped, 0), 0), Some(Settled::Skipped));
        assert_eq!(settled(&at(State::Dead, 8), 8), Some(Settled::Dead));
    }

    #[test]
    fn a_copy_joins_the_attempt_under_way() {
        let joined = ended(&at(State::Processing, 2));
        assert_eq!(settled(&at(State::Retrying, 2), joined), Some(Settled::NotYet));
        let hastened = ended(&at(State::Retrying, 2));
        assert_eq!(settled(&at(State::Retrying, 2), hastened), None);
        assert_eq!(settled(&at(State::Processing, 3), hastened), None);
        assert_eq!(settled(&at(State::Retrying, 3), hastened), Some(Settled::NotYet));
    }

    /// Three attempts have failed: the fourth request of the sender is its last.
    #[test]
    fn after_three_attempts_the_sender_may_stop() {
        assert_eq!(settled(&at(State::Retrying, 3), 2), Some(Settled::NotYet));
        assert_eq!(settled(&at(State::Retrying, 3), 3), Some(Settled::Retrying));
        assert_eq!(settled(&at(State::Processing, 4), 3), Some(Settled::Retrying));
        assert_eq!(settled(&at(State::Processed, 4), 3), Some(Settled::Processed));
        assert_eq!(settled(&at(State::Dead, 15), 15), Some(Settled::Dead));
    }

    #[test]
    fn nobody_is_remembered_after_waiting() {
        let awaited = Awaited::default();
        let receipt = ReceiptId::from_bytes([1; 16]);
        let one = awaited.wait_for(receipt);
        let other = awaited.wait_for(receipt);
        drop(one);
        assert_eq!(awaited.waiting.lock().unwrap().len(), 1);
        drop(other);
        assert!(awaited.waiting.lock().unwrap().is_empty());
        awaited.wake(receipt);
    }
}
