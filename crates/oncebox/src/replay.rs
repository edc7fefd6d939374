//! Replays: durable jobs that open deliveries again.
//!
//! A job is a row with a filter and a cursor. Whoever drives it, the command that made it or a
//! server after that command died, takes a lease on the row and does one bounded step after the
//! other; each step reopens a page of deliveries and moves the cursor in one transaction, so a
//! crash repeats nothing and leaves nothing out.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::delivery::{DeliveryId, Lease, State};
use crate::receipt::{ReceiptId, RouteNo};

/// The id of a replay job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplayId(pub uuid::Uuid);

impl fmt::Display for ReplayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ReplayId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A replay job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Its id.
    pub id: ReplayId,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub who: String,
    /// Why, where they said.
    pub why: Option<String>,
    /// What it is about.
    pub filter: ReplayFilter,
    /// How it treats what it finds.
    pub how: How,
    /// Deliveries a second at most.
    pub rate: Option<u32>,
    /// How far it is.
    pub phase: Phase,
    /// Deliveries it was about when it was planned.
    pub planned: u64,
    /// Deliveries opened again.
    pub opened: u64,
    /// Deliveries left as they were: already open, processed without force, or gone.
    pub passed: u64,
    /// The last delivery it has dealt with.
    pub cursor: Option<DeliveryId>,
    /// The lease it is driven under, once somebody took it.
    pub lease: Lease,
}

/// Which deliveries a replay is about. Every part that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayFilter {
    /// Of these receipts; any, if empty.
    pub receipts: Vec<ReceiptId>,
    /// Of these routes; any the receipts were taken by, if empty.
    pub routes: Vec<RouteNo>,
    /// Of this source.
    pub source: Option<String>,
    /// Of this type; `*` stands for any text.
    pub event_type: Option<String>,
    /// Received at or after this time.
    pub since: Option<Timestamp>,
    /// Received before this time.
    pub until: Option<Timestamp>,
    /// In this state.
    pub state: Option<State>,
    /// Also receipts the routes never took: fills a route that was added later.
    pub fill: bool,
}

/// How a replay treats what it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Whether what was processed is run again.
    pub force: bool,
    /// Whether the guards against stale and repeated events are passed.
    pub ignore_stale: bool,
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Under way, or waiting for somebody to drive it.
    Running,
    /// Through.
    Done,
    /// Stopped by an operator.
    Cancelled,
}

impl Phase {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }

    /// The phase a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Cancelled].into_iter().find(|p| p.as_str() == word)
    }
}

/// One step of a job, as the store is told.
#[derive(Clone, Debug)]
pub struct ReplayStep {
    /// The job.
    pub id: ReplayId,
    /// The lease it is driven under.
    pub lease: Lease,
    /// Deliveries to open, with whether their route never took the receipt.
    pub open: Vec<(DeliveryId, bool)>,
    /// Deliveries of this page that were left alone.
    pub passed: u64,
    /// Where the next page starts.
    pub cursor: Option<DeliveryId>,
    /// Whether this was the last.
    pub done: bool,
    /// How it treats what it finds.
    pub how: How,
}

/// What became of a delivery that was to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopened {
    /// It is due now, with a fresh budget of attempts.
    Opened,
    /// It was left as it was.
    Left(State),
    /// Its receipt has expired.
    Gone,
}
