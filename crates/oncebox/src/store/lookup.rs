//! Finding receipts by what people write: ids, event ids, and the beginnings of both.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::limits::LOOKED_THROUGH;
use crate::receipt::ReceiptId;

/// The side of a store that finds what an id means. [`lookup`](crate::lookup) decides.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// Receipts from one id to another, both included, newest first.
    async fn receipts_within(
        &self,
        from: ReceiptId,
        to: ReceiptId,
        limit: usize,
    ) -> Result<Vec<NamedReceipt>, StoreError>;

    /// The first receipts of an event id, one in each source that has it, and odd receipts that
    /// came under it.
    async fn events(&self, event_id: &str) -> Result<Vec<NamedReceipt>, StoreError>;

    /// Receipts whose event ids begin so. `None` if so many may that not all were looked at.
    async fn events_beginning(
        &self,
        beginning: &str,
    ) -> Result<Option<Vec<NamedReceipt>>, StoreError>;
}

/// A receipt that an id may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedReceipt {
    /// Its id.
    pub receipt: ReceiptId,
    /// The name of its source.
    pub source: String,
    /// What it holds: the event id, the type, and when it was received. None if that has expired.
    pub event: Option<NamedEvent>,
    /// Whether it is a twin, a conflict or defective.
    pub is_odd: bool,
}

/// What tells one event from another for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvent {
    /// The provider's id.
    pub event_id: String,
    /// The provider's type.
    pub event_type: String,
    /// When it was received.
    pub received_at: Timestamp,
}

/// Whether a list holds all that there is, and was not cut.
pub(super) fn is_all(found: &[NamedReceipt]) -> bool {
    i64::try_from(found.len()).is_ok_and(|found| found < LOOKED_THROUGH)
}

/// The greatest text that begins so, for comparing by bytes.
pub(super) fn last_beginning(beginning: &str) -> String {
    format!("{beginning}\u{10ffff}")
}

/// Leaves of what was found by keys what really begins so, and joins the odd ones.
pub(super) fn beginning_so(
    beginning: &str,
    events: Vec<NamedReceipt>,
    odd: Vec<NamedReceipt>,
) -> Vec<NamedReceipt> {
    let begins = |named: &NamedReceipt| {
        named.event.as_ref().is_some_and(|event| event.event_id.starts_with(beginning))
    };
    let mut found: Vec<_> = odd.into_iter().chain(events).filter(begins).collect();
    // An odd receipt has an identity as well.
    found.sort_by_key(|named| (named.receipt, !named.is_odd));
    found.dedup_by_key(|named| named.receipt);
    found.reverse();
    found
}
