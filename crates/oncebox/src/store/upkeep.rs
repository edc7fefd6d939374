//! What one node does for all: see [`maintenance`](crate::maintenance).

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{ArrivalCount, DeliveryFlow, Span, StoreError};
use crate::receipt::SourceNo;
use crate::retention::Keep;

/// The side of a store that is kept in order.
#[async_trait]
pub trait Upkeep: Send + Sync {
    /// Takes the lead in maintenance for this long, or keeps it, unless another has it. Says
    /// whether the asker has it. The process that serves a SQLite file always has it.
    async fn lead(&self, who: &str, lasting: Duration) -> Result<bool, StoreError>;

    /// Gives up the lead, if `who` has it.
    async fn resign(&self, who: &str) -> Result<(), StoreError>;

    /// Tells how long sources, by name, keep what they received, as this node has it configured.
    async fn tell_windows(&self, windows: &HashMap<String, Keep>) -> Result<(), StoreError>;

    /// The longest window that any node told of each source. A node that has not told anything
    /// for a day does not count if another has.
    async fn windows(&self) -> Result<Vec<(SourceNo, Keep)>, StoreError>;

    /// Makes what is written in the next days. A store that needs nothing made has nothing to do.
    async fn make_ready(&self) -> Result<(), StoreError>;

    /// Adds up what writers counted and removes counts that are too old. Any number of nodes may do
    /// it at once: nothing is counted twice.
    async fn fold(&self, now: Timestamp) -> Result<(), StoreError>;

    /// What came in from one time to another, as far as it is added up.
    async fn arrival_counts(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ArrivalCount>, StoreError>;

    /// Which states deliveries came into from one time to another, as far as it is added up.
    async fn delivery_flows(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DeliveryFlow>, StoreError>;
}
