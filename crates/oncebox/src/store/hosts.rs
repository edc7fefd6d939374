//! The hosts that a store URL names, and which of them an operator says is the primary.

use super::open::Backend;
use super::{Act, StoreError, postgres};

/// A host of the store URL, and what it said when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostView {
    /// As the URL names it, with its port.
    pub host: String,
    /// What it is.
    pub state: HostState,
}

/// What a PostgreSQL host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostState {
    /// It takes writes.
    Primary {
        /// The identifier that all copies of its cluster have.
        system: u64,
        /// Raised by each promotion.
        timeline: u32,
    },
    /// It is in recovery.
    Standby {
        /// The identifier that all copies of its cluster have.
        system: u64,
    },
    /// It does not let this role ask.
    Untold,
    /// It did not answer, for this reason.
    Silent(String),
}

impl HostState {
    /// Its word in lists.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Primary { .. } => "primary",
            Self::Standby { .. } => "standby",
            Self::Untold => "untold",
            Self::Silent(_) => "silent",
        }
    }
}

/// How many hosts a store URL names; none for SQLite.
pub fn host_count(url: &str) -> Result<usize, StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(_) => Ok(0),
        Backend::Postgres(url) => postgres::host_count(url),
    }
}

/// Asks every host of a store URL what it is, each with a deadline; none for SQLite.
pub async fn hosts(url: &str) -> Result<Vec<HostView>, StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(_) => Ok(Vec::new()),
        Backend::Postgres(url) => postgres::hosts(url).await,
    }
}

/// Says, in the audit of the store on that host, that it is the primary. Running nodes that refuse
/// it take it within seconds. Returns its system identifier and timeline.
pub async fn adopt(url: &str, host: &HostView, act: &Act) -> Result<String, StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(_) => {
            Err(StoreError::unfit("the store is a file", "Only hosts of PostgreSQL are adopted."))
        }
        Backend::Postgres(url) => postgres::adopt(url, host, act).await,
    }
}
