//! What sources were sent lately, for the people who operate them: when a source accepted and
//! rejected last, requests that were rejected, and what nodes do while an `oncebox tail` runs.
//!
//! All of it is written about once a second for everything that happened meanwhile. None of it
//! decides anything: a crash may lose the last second.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::limits;
use crate::receipt::{ReceiptId, SecretNo, SourceNo};

/// The side of a store that shows what goes on.
#[async_trait]
pub trait Activity: Send + Sync {
    /// Adds what sources were sent, and keeps requests that were rejected. Of each source and
    /// reason only the newest are kept, as many as the newest of them says.
    async fn note_activity(
        &self,
        notes: Vec<ActivityNote>,
        rejected: Vec<Rejected>,
    ) -> Result<(), StoreError>;

    /// What each source was sent last, in the order of their numbers.
    async fn activity(&self) -> Result<Vec<SourceActivity>, StoreError>;

    /// Requests that were rejected and kept, newest first, without their headers and bodies.
    async fn rejected_list(&self, filter: &RejectedFilter) -> Result<Vec<Rejected>, StoreError>;

    /// One request that was rejected and kept.
    async fn rejected(&self, id: ReceiptId) -> Result<Option<Rejected>, StoreError>;

    /// Asks every node to write down what it does for this long, for `oncebox tail`.
    async fn watch(&self, lasting: Duration) -> Result<(), StoreError>;

    /// Whether an `oncebox tail` asked nodes to write down what they do.
    async fn is_watched(&self) -> Result<bool, StoreError>;

    /// Writes down what a node did, and removes what is older than
    /// [`HAPPENINGS_KEPT`](crate::limits::HAPPENINGS_KEPT).
    async fn note_happenings(&self, lines: Vec<Happening>) -> Result<(), StoreError>;

    /// What nodes did and wrote down, oldest first. Read again what was read before: the numbers
    /// are in no order of commits.
    async fn happenings(&self) -> Result<Vec<Happening>, StoreError>;
}

/// What a source was sent since the last note of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityNote {
    /// The source.
    pub source: SourceNo,
    /// When it last accepted an event.
    pub accepted_at: Option<Timestamp>,
    /// When it last rejected a request, and the most frequent reason since the last that was
    /// accepted.
    pub rejection: Option<RejectionNote>,
    /// Requests that were rejected since the last that was accepted, or since the last note.
    pub rejected_in_a_row: u64,
    /// Secrets by which requests verified, and when last.
    pub secrets: Vec<(SecretNo, Timestamp)>,
}

/// When and why a request was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectionNote {
    /// When.
    pub at: Timestamp,
    /// A stable word.
    pub reason: String,
    /// What the operator should check.
    pub hint: Option<String>,
}

/// What a source was sent last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceActivity {
    /// The source.
    pub source: SourceNo,
    /// When it last accepted an event.
    pub accepted_at: Option<Timestamp>,
    /// When it last rejected a request, and the most frequent reason then.
    pub rejection: Option<RejectionNote>,
    /// Requests that were rejected since the last that was accepted.
    pub rejected_in_a_row: u64,
    /// The fingerprint of the secret that verified last, and when.
    pub secret: Option<(String, Timestamp)>,
}

/// A request that was rejected and kept. Nothing in it is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its id, minted like that of a receipt.
    pub id: ReceiptId,
    /// The source it was sent to.
    pub source: SourceNo,
    /// When it came, why it was rejected, and what to check.
    pub rejection: RejectionNote,
    /// Who sent it, as far as that is believed.
    pub sender: String,
    /// How it was sent: `POST`, `GET`.
    pub method: String,
    /// Where it was sent to, as the provider saw it where that is known.
    pub url: String,
    /// Its headers, credentials as fingerprints; see
    /// [`decode_headers`](crate::receipt::decode_headers).
    pub headers: Vec<u8>,
    /// Its body, up to [`REJECTED_BODY`](crate::limits::REJECTED_BODY) bytes of it.
    pub body: Vec<u8>,
    /// How long the body was, as far as is known.
    pub body_bytes: u64,
    /// How many of its source and reason are kept.
    pub keep: u32,
}

/// Which rejected requests to list.
#[derive(Clone, Copy, Debug)]
pub struct RejectedFilter {
    /// Only to this source.
    pub source: Option<SourceNo>,
    /// Only from this id on.
    pub from: ReceiptId,
    /// Only up to this id.
    pub to: ReceiptId,
    /// How many at most.
    pub limit: usize,
}

impl RejectedFilter {
    /// All of them that came since a time.
    pub fn since(time: Timestamp) -> Self {
        let (from, to) = (ReceiptId::floor(time), ReceiptId::from_bytes([0xff; 16]));
        Self { source: None, from, to, limit: usize::MAX }
    }
}

/// Something that a node did: a decision about a request, or an attempt of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// Its number; given by the store.
    pub no: i64,
    /// When.
    pub at: Timestamp,
    /// What, as JSON.
    pub line: String,
}

/// The first id of rejected requests that are still kept.
pub(super) fn kept_since(now: Timestamp) -> ReceiptId {
    let kept = jiff::SignedDuration::try_from(limits::REJECTED_KEPT).unwrap_or_default();
    ReceiptId::floor(now.checked_sub(kept).unwrap_or(Timestamp::UNIX_EPOCH))
}
