//! Deliveries: the obligation to get one receipt through one route, and what can come of it.
//!
//! Every decision about a delivery is a pure function here: [`judge`] says at the claim whether it
//! may run, [`next()`] says after the attempt where it goes. The stores gather the facts, apply the
//! decision by compare-and-set, and own the clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::effect::OUTBOX;
use crate::receipt::{Mark, ReceiptId, RouteNo, SourceNo};

mod guard;
mod next;
mod suspicion;

pub use guard::{Facts, Judgement, judge};
pub use next::{Next, Outcome, next};
pub(crate) use suspicion::Suspicion;

/// A delivery: one receipt through one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId {
    /// The receipt.
    pub receipt: ReceiptId,
    /// The route.
    pub route: RouteNo,
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.receipt, self.route.0)
    }
}

/// A text that names no delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a delivery id is a receipt id, a dot and a number")]
pub struct NoDeliveryId;

impl FromStr for DeliveryId {
    type Err = NoDeliveryId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (receipt, route) = text.rsplit_once('.').ok_or(NoDeliveryId)?;
        let receipt = receipt.parse().map_err(|_| NoDeliveryId)?;
        let route = route.parse().map_err(|_| NoDeliveryId)?;
        Ok(Self { receipt, route: RouteNo(route) })
    }
}

/// A worker's claim on a delivery. The upper bits count claims, so that a later one is greater;
/// the lower twenty are random, so that a lease from before a database was restored from a backup
/// does not fit the one that was given out after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease(pub i64);

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What state a delivery is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Recorded, and not yet tried.
    Received,
    /// Under a lease.
    Processing,
    /// Tried, and due again later.
    Retrying,
    /// Waiting for something other than time; see [`Reason`].
    Held,
    /// Given up until somebody replays or discards it.
    Dead,
    /// Done.
    Processed,
    /// Finished without being delivered; see [`Reason`].
    Skipped,
}

impl State {
    /// Every state, in the order lists show them.
    pub const ALL: [Self; 7] = [
        Self::Received,
        Self::Processing,
        Self::Retrying,
        Self::Held,
        Self::Dead,
        Self::Processed,
        Self::Skipped,
    ];

    /// The word for it, in the store and everywhere else.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Processing => "processing",
            Self::Retrying => "retrying",
            Self::Held => "held",
            Self::Dead => "dead",
            Self::Processed => "processed",
            Self::Skipped => "skipped",
        }
    }

    /// The state a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing more happens to it unless it is replayed.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Processed | Self::Skipped)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a delivery is held or was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Held: another delivery about the same object goes first.
    Order,
    /// Held while the first of the same operation is open; skipped once that was processed.
    SameOperation,
    /// Held: its route is paused.
    Paused,
    /// Held: no configuration names its route.
    NoRoute,
    /// Held: whether an effect happened is not known.
    UnknownEffect,
    /// Held: its signed content was seen before under another, unsigned id.
    Twin,
    /// Held: its identity was seen before with other content.
    Conflict,
    /// Held: the stored body does not match the digest taken when it arrived.
    Damaged,
    /// Skipped: a newer event about the same object was processed.
    Stale,
    /// Skipped: an operator gave it up.
    Discarded,
}

impl Reason {
    /// Every reason, in the order lists show them.
    pub const ALL: [Self; 10] = [
        Self::Order,
        Self::SameOperation,
        Self::Paused,
        Self::NoRoute,
        Self::UnknownEffect,
        Self::Twin,
        Self::Conflict,
        Self::Damaged,
        Self::Stale,
        Self::Discarded,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::SameOperation => "same-operation",
            Self::Paused => "paused",
            Self::NoRoute => "no-route",
            Self::UnknownEffect => "unknown-effect",
            Self::Twin => "twin",
            Self::Conflict => "conflict",
            Self::Damaged => "damaged",
            Self::Stale => "stale",
            Self::Discarded => "discarded",
        }
    }

    /// The reason a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often a delivery was tried since it was recorded or last replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Claims, counted when they were made; a lease returned unstarted is taken off again.
    pub attempts: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// Attempts whose lease ran out: the worker died, or hung.
    pub crashes: u32,
    /// Attempts that asked to come back later.
    pub snoozes: u32,
    /// How long it has been tried: attempts that failed, and the pauses that followed them. What
    /// it waits for beyond that is not counted: a route that is paused, another delivery, a
    /// breaker that is open, a snooze.
    pub tried: Duration,
}

impl Counts {
    /// The same after an attempt that took this long.
    pub fn after(self, took: Duration) -> Self {
        Self { tried: self.tried.saturating_add(took), ..self }
    }

    /// Attempts that count against the route's `max_attempts`: all but snoozes.
    pub fn spent(self) -> u32 {
        self.attempts.saturating_sub(self.snoozes)
    }
}

/// A delivery under a lease, with what its consumer is told of the event. The payload is fetched
/// apart, when there is memory for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The lease it is under.
    pub lease: Lease,
    /// Until when that lasts, by the store's clock.
    pub lease_until: Timestamp,
    /// Where the event came in.
    pub source: SourceNo,
    /// The name of that source.
    pub source_name: String,
    /// The provider's id of the event.
    pub event_id: String,
    /// The provider's type of the event.
    pub event_type: String,
    /// The business thing it is about.
    pub object: Option<String>,
    /// The provider's ordering value.
    pub version: Option<i64>,
    /// When it was received.
    pub received_at: Timestamp,
    /// Bytes of its headers and body.
    pub bytes: usize,
    /// How often it was tried, this attempt included.
    pub counts: Counts,
    /// How often it was replayed.
    pub replays: u32,
    /// Whether finishing it may let others of its object or operation go on.
    pub guarded: bool,
    /// How its receipt is marked, if that is odd.
    pub mark: Option<Mark>,
    /// The key under which its consumer can tell it from others, the same over retries, replays
    /// and renames.
    pub key: String,
}

/// The key a consumer knows a delivery by. Source and route go in under the names they were born
/// with, so a rename does not change it. A twin or conflict adds the digest of its body: it is not
/// the event that came first under its id. An outbox message has the key its sender gave it.
pub fn idempotency_key(
    source: &str,
    event_id: &str,
    route: &str,
    odd_digest: Option<&[u8]>,
) -> String {
    if source.starts_with(OUTBOX) {
        return event_id.to_owned();
    }
    let mut hash = Sha256::new();
    let parts = [source.as_bytes(), event_id.as_bytes(), route.as_bytes()];
    for part in parts.into_iter().chain(odd_digest) {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    format!("ob_{}", hex::encode(&hash.finalize()[..16]))
}

/// What is said of a delivery that is held as damaged.
pub const DAMAGED: &str = "the stored body does not match the digest taken when it arrived";

/// Raw bytes of an event, as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The receipt they belong to.
    pub receipt: ReceiptId,
    /// The request's headers; see [`decode_headers`](crate::receipt::decode_headers).
    pub headers: Vec<u8>,
    /// The raw body; of an event that came together with others, the event alone.
    pub body: Vec<u8>,
    /// The place of the event in its request, from 0, where it came together with others.
    pub position: Option<u32>,
    /// What the event is about as its provider has it now, where the route fetches that.
    pub current: Option<Current>,
}

/// The object an event is about, as its provider has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// This is it.
    Found {
        /// What sort of text or bytes.
        content_type: String,
        /// The answer of the provider.
        body: Bytes,
    },
    /// The provider has no such object any more.
    Missing,
}

/// The end of an attempt, as the store is told. It changes something only under a lease that is
/// still good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The lease the attempt ran under.
    pub lease: Lease,
    /// Where the delivery goes.
    pub next: Next,
    /// How long the attempt took.
    pub took: Duration,
    /// The consumer's answer, where it is a number.
    pub status: Option<u16>,
    /// What went wrong or why to come back: shown to operators.
    pub detail: Option<String>,
    /// What the consumer says it did.
    pub summary: Option<String>,
    /// As in [`Claimed::guarded`].
    pub guarded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_ids_read_as_they_are_written() {
        let id = DeliveryId { receipt: ReceiptId::from_bytes([7; 16]), route: RouteNo(3) };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("no-receipt.3".parse::<DeliveryId>(), Err(NoDeliveryId));
        assert_eq!(id.receipt.to_string().parse::<DeliveryId>(), Err(NoDeliveryId));
    }

    #[test]
    fn words_and_states_are_one_to_one() {
        assert!(State::ALL.iter().all(|state| State::of(state.as_str()) == Some(*state)));
        assert!(Reason::ALL.iter().all(|reason| Reason::of(reason.as_str()) == Some(*reason)));
    }

    #[test]
    fn keys_tell_their_parts_apart() {
        let key = idempotency_key("stripe", "evt_1", "billing", None);
        assert_eq!(key, idempotency_key("stripe", "evt_1", "billing", None));
        assert_ne!(key, idempotency_key("stripe", "evt_1b", "illing", None));
        assert_ne!(key, idempotency_key("stripee", "vt_1", "billing", None));
        assert_ne!(key, idempotency_key("stripe", "evt_1", "billing", Some(&[7; 32])));
        assert_eq!(key.len(), 35);
    }
}
