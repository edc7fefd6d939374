//! How a store is doing.

use jiff::Timestamp;

/// How a store is doing.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// The store's own clock, where it has one that is not ours.
    pub clock: Option<Timestamp>,
    /// Size of SQLite's write-ahead log.
    pub wal_bytes: Option<u64>,
    /// Something an operator should look at, though recording goes on.
    pub warning: Option<String>,
    /// Receipts acknowledged by this process that a new primary did not have. None is right.
    pub missing_receipts: Option<u64>,
    /// How often this process went over to another primary.
    pub primary_changes: Option<u64>,
}
