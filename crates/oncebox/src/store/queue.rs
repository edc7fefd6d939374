//! Deliveries on their way: the part of a store that workers use.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;

use super::StoreError;
use crate::delivery::{Claimed, DeliveryId, Ending, Lease, Payload, Reason, State};
use crate::receipt::{ReceiptId, RouteNo};
use crate::route::RouteRules;

/// Claims, leases and outcomes. Times are the store's: no worker's clock is trusted.
#[async_trait]
pub trait Queue: Send + Sync + 'static {
    /// Changes whenever a delivery may have become due. A worker that looks at it before it
    /// claims, and claims again once it changed, misses nothing that this process or, on
    /// PostgreSQL, another one announces.
    fn due(&self) -> watch::Receiver<u64>;

    /// Claims due deliveries of the wanted routes, oldest first, under a lease of the given
    /// length; counts the attempt. Never more than wanted. Deliveries whose last lease was lost
    /// are claimed apart from the others, and in the end each alone. Those that
    /// [`judge`](crate::delivery::judge) skips or holds are moved out of the way in the same
    /// transaction.
    async fn claim(&self, claim: &Claim) -> Result<Claims, StoreError>;

    /// The payloads of receipts, in any order. Left out is what has expired, and what does not
    /// match the digest taken when it arrived: [`is_damaged`](super::Store::is_damaged) tells
    /// which.
    async fn payloads(&self, receipts: &[ReceiptId]) -> Result<Vec<Payload>, StoreError>;

    /// Makes leases last until this long from now. Says of each until when that is, by the store's
    /// clock; `None` for one that was not good any more.
    async fn extend(
        &self,
        leases: &[(DeliveryId, Lease)],
        by: Duration,
    ) -> Result<Vec<Option<Timestamp>>, StoreError>;

    /// Ends attempts. Each changes something only if its lease is the delivery's latest and has
    /// not run out; returns the outcome of each. None waits for another: one that needs a row that
    /// is locked is left, and says so. What ends in a transaction also moves watermarks, remembers
    /// operations and lets go what was held behind a finished delivery.
    async fn finish(&self, endings: Vec<Ending>) -> Result<Vec<Finish>, StoreError>;

    /// Whether attempts have ended just so under their leases. Changes nothing.
    async fn were_ended(&self, endings: &[Ending]) -> Result<Vec<bool>, StoreError>;

    /// Takes up to `limit` deliveries whose lease ran out away from their workers: due again at
    /// once and alone, or dead if their attempts are spent. Any route, configured or not.
    async fn rescue(&self, limit: usize) -> Result<Rescued, StoreError>;

    /// Looks at the next held deliveries and lets go up to `limit` of them that nothing is in the
    /// way of any more, as after a change of rules. Begins again after the last. A safety net:
    /// finishing a delivery does this for its own followers.
    async fn release_unblocked(&self, limit: usize) -> Result<Unblocked, StoreError>;

    /// Gives the next open deliveries of a route that has come to guard objects their objects, as
    /// many as a short transaction takes. Nothing of the route is claimed until all have theirs.
    /// Says whether any route is left to go on with.
    async fn fill_lanes(&self) -> Result<bool, StoreError>;

    /// Makes a retry due now, unless that was done within `apart`. Returns where the delivery
    /// stands afterwards.
    async fn hasten(
        &self,
        delivery: DeliveryId,
        apart: Duration,
    ) -> Result<Option<Standing>, StoreError>;

    /// Where a delivery stands.
    async fn standing(&self, delivery: DeliveryId) -> Result<Option<Standing>, StoreError>;

    /// Says which breakers of a worker are not closed, instead of what it said before. Nothing is
    /// decided by it: operators see it.
    async fn tell_breakers(&self, worker: &str, notes: &[BreakerNote]) -> Result<(), StoreError>;
}

/// What the name of a worker elsewhere begins with: one that pulls over HTTP, under a token. Its
/// lease outlasts an orderly restart of the process that serves a SQLite file.
pub const OUTSIDE: &str = "token ";

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The routes it works for.
    pub wanted: Vec<Wanted>,
    /// How long the leases are.
    pub lease: Duration,
    /// Who asks, for operators to see; a worker elsewhere begins with [`OUTSIDE`].
    pub worker: String,
}

/// How much a worker takes of a route.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The route.
    pub route: RouteNo,
    /// At most this many.
    pub most: usize,
    /// Its rules, as configured here.
    pub rules: RouteRules,
    /// How long its leases are, where that differs from the claim's.
    pub lease: Option<Duration>,
    /// Which of them.
    pub pick: Pick,
}

impl Wanted {
    /// So many of those that are due, under leases of the claim's length.
    pub fn new(route: RouteNo, most: usize, rules: RouteRules) -> Self {
        Self { route, most, rules, lease: None, pick: Pick::Due }
    }

    /// How long its leases are.
    pub(super) fn lease_in(&self, claim: &Claim) -> Duration {
        self.lease.unwrap_or(claim.lease)
    }
}

/// Which due deliveries a claim takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// Those that became due first.
    #[default]
    Due,
    /// Those that never failed, then those that failed longest ago: the destination has only just
    /// come back, or is to be tried.
    UnfailedFirst,
    /// Only those that never failed.
    OnlyUnfailed,
}

/// A breaker that is not closed, as its worker tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerNote {
    /// Whose.
    pub route: RouteNo,
    /// Its state, in a word.
    pub state: &'static str,
    /// Why it opened.
    pub reason: String,
    /// How long until it lets a delivery through to see.
    pub next_probe: Option<Duration>,
}

/// What a claim came to.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// To be worked on, under leases.
    pub claimed: Vec<Claimed>,
    /// Finished at the claim.
    pub skipped: Vec<(DeliveryId, Reason)>,
    /// Found to be waiting for another.
    pub held: Vec<(DeliveryId, Reason)>,
    /// The routes of which only deliveries were looked at whose last lease was lost.
    pub alone: Vec<RouteNo>,
}

impl Claims {
    /// Adds what another part of the claim came to.
    pub(super) fn add(&mut self, more: Self) {
        self.claimed.extend(more.claimed);
        self.skipped.extend(more.skipped);
        self.held.extend(more.held);
        self.alone.extend(more.alone);
    }
}

/// What came of an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The attempt ended by it.
    Done,
    /// The attempt had ended the same way before: whoever ended it has not heard of that.
    Before,
    /// Its lease was not good any more, and nothing was changed.
    Lost,
    /// Another transaction has locked what it needs. Nothing was changed; the caller tries again.
    Locked,
}

impl Finish {
    /// Whether the attempt ended that way, now or before.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Done | Self::Before)
    }
}

/// What a rescue came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// Due again.
    pub retrying: Vec<DeliveryId>,
    /// Out of attempts.
    pub dead: Vec<DeliveryId>,
}

/// What a look at held deliveries came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unblocked {
    /// How many were let go.
    pub released: usize,
    /// Whether there are others that this round has not looked at.
    pub more: bool,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: State,
    /// Why, where it is held or skipped.
    pub reason: Option<Reason>,
    /// How often it was claimed.
    pub attempts: u32,
}
