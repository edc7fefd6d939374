//! What operators see and do: lists, counts, and acts that are audited in the transaction that
//! does them.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::delivery::{Counts, DeliveryId, Reason, State};
use crate::receipt::{Mark, ReceiptId, RouteNo, SourceNo};
use crate::replay::{Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use crate::route::RouteRules;
use crate::token::{Token, TokenId};

/// The operators' side of a store.
#[async_trait]
pub trait Desk: Send + Sync + 'static {
    /// Every route the store has ever seen, with its rules and whether it is paused.
    async fn routes(&self) -> Result<Vec<RouteView>, StoreError>;

    /// Breakers that are not closed, as workers told within the last minute.
    async fn breakers(&self) -> Result<Vec<BreakerRow>, StoreError>;

    /// Pauses or resumes a route; false if there is none of that name. Claims skip a paused
    /// route; nothing else changes.
    async fn pause_route(&self, name: &str, paused: bool, act: &Act) -> Result<bool, StoreError>;

    /// Deliveries, newest receipt first.
    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliveryRow>, StoreError>;

    /// Every attempt of a receipt's deliveries that has ended, oldest first.
    async fn attempts(&self, receipt: ReceiptId) -> Result<Vec<AttemptRow>, StoreError>;

    /// How many deliveries are in each state, and since when the oldest of them was received.
    /// What was processed is counted, and has no age: that would say how long it is kept.
    async fn tally(&self) -> Result<Vec<Tally>, StoreError>;

    /// Gives up an open delivery that nobody works on: `skipped: discarded`. Says what it found.
    async fn discard(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError>;

    /// Lets a held delivery go before its turn. It still waits while another of its object is
    /// being processed.
    async fn release(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError>;

    /// Records a replay job.
    async fn create_replay(&self, replay: &Replay, act: &Act) -> Result<(), StoreError>;

    /// Replay jobs, newest first.
    async fn replays(&self, limit: usize) -> Result<Vec<Replay>, StoreError>;

    /// One replay job.
    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError>;

    /// Takes an unfinished job that nobody drives, or the one named, for `lease`.
    async fn take_replay(
        &self,
        id: Option<ReplayId>,
        lease: Duration,
    ) -> Result<Option<Replay>, StoreError>;

    /// The next deliveries a replay is about, in the order of receipt and route. Where the filter
    /// fills routes, every receipt that one of its routes never took is among them: whether the
    /// route takes it is for the caller to say, by [`ReplayFilter::takes`].
    async fn replay_page(
        &self,
        filter: &ReplayFilter,
        after: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<ReplayCandidate>, StoreError>;

    /// Does one step of a job under its lease: reopens deliveries, adds to its counts and moves
    /// its cursor, in one transaction. `None` if the job was cancelled or somebody else has it.
    async fn step_replay(&self, step: &ReplayStep) -> Result<Option<Vec<Reopened>>, StoreError>;

    /// Cancels a job; false if it is not running.
    async fn cancel_replay(&self, id: ReplayId, act: &Act) -> Result<bool, StoreError>;

    /// Records a token.
    async fn create_token(&self, token: &Token, act: &Act) -> Result<(), StoreError>;

    /// Every token, newest first.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// One token.
    async fn token(&self, id: &TokenId) -> Result<Option<Token>, StoreError>;

    /// Revokes a token; false if there is none or it was revoked before.
    async fn revoke_token(&self, id: &TokenId, act: &Act) -> Result<bool, StoreError>;

    /// Writes down an act that has no transaction of its own, before it begins: `retention.run`,
    /// `replay.resume`.
    async fn note_act(&self, act: &Act, what: &str, subject: &str) -> Result<(), StoreError>;

    /// What operators did, newest first.
    async fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditRow>, StoreError>;
}

/// An operator's act, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// Who does it.
    pub who: String,
    /// Through which door: `cli`, `api` or `console`.
    pub via: &'static str,
    /// Why, where they said.
    pub why: Option<String>,
    /// When, by the clock of that door.
    pub at: Timestamp,
}

/// One line of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Its number.
    pub no: i64,
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub who: String,
    /// Through which door.
    pub via: String,
    /// What: `route.pause`, `replay.create` and so on.
    pub act: String,
    /// To what.
    pub subject: String,
    /// Why, where they said.
    pub why: Option<String>,
}

/// What an act on a delivery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acted {
    /// It was done.
    Done,
    /// There is no such delivery.
    NotFound,
    /// It is in a state the act does not apply to.
    Not(State),
}

/// A route as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteView {
    /// Its number.
    pub route: RouteNo,
    /// Its name.
    pub name: String,
    /// The name it was born with, which keys are made of.
    pub born_as: String,
    /// Its rules, as last configured.
    pub rules: RouteRules,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// Whether its open deliveries are being given their objects, since it has come to guard
    /// objects. Nothing of it is claimed until that is done.
    pub filling: bool,
}

/// A breaker that is not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerRow {
    /// The route it is of.
    pub route: RouteNo,
    /// The worker that has it.
    pub worker: String,
    /// Its state: `open`, `half-open`, `ramping` or `slowed`.
    pub state: String,
    /// Why.
    pub reason: String,
    /// When it lets a delivery through to see.
    pub next_probe_at: Option<Timestamp>,
    /// When its worker said so.
    pub told_at: Timestamp,
}

/// Which deliveries to list.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// Only of this route.
    pub route: Option<String>,
    /// Only of this source.
    pub source: Option<String>,
    /// Only of this event type; `*` stands for any text.
    pub event_type: Option<String>,
    /// Only in this state, as stored.
    pub state: Option<State>,
    /// Only for this reason, as stored.
    pub reason: Option<Reason>,
    /// Only of receipts received at or after this time.
    pub since: Option<Timestamp>,
    /// Only of receipts received before this time.
    pub until: Option<Timestamp>,
    /// Only of this receipt.
    pub receipt: Option<ReceiptId>,
    /// Only of event ids that begin so.
    pub event_id_prefix: Option<String>,
    /// Only about this object.
    pub object: Option<String>,
    /// Only before this one in the list: the last of the page before.
    pub before: Option<DeliveryId>,
    /// How many at most.
    pub limit: usize,
}

/// A delivery in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The name of its route.
    pub route: String,
    /// Whether that route is paused.
    pub paused: bool,
    /// The name of its source.
    pub source: String,
    /// The provider's id of the event.
    pub event_id: String,
    /// The provider's type of the event.
    pub event_type: String,
    /// The business thing it is about.
    pub object: Option<String>,
    /// The provider's ordering value.
    pub version: Option<i64>,
    /// When the event was received.
    pub received_at: Timestamp,
    /// Its state.
    pub state: State,
    /// Why, where it is held or skipped.
    pub reason: Option<Reason>,
    /// How often it was tried.
    pub counts: Counts,
    /// How often it was replayed.
    pub replays: u32,
    /// When it is due, if it waits for time.
    pub due_at: Option<Timestamp>,
    /// When its lease runs out, if it is under one.
    pub lease_until: Option<Timestamp>,
    /// Who has it, if it is under a lease.
    pub worker: Option<String>,
    /// When it was finished.
    pub finished_at: Option<Timestamp>,
    /// The last thing that went wrong, or why it comes back.
    pub detail: Option<String>,
    /// What its consumer says it did.
    pub summary: Option<String>,
    /// The first receipt of the same operation, where it repeats one.
    pub first: Option<ReceiptId>,
    /// The effect it is held for, where what came of that is not known.
    pub waits_for: Option<String>,
    /// The delivery it is held behind, where order or its operation holds it.
    pub behind: Option<Behind>,
    /// How its receipt is marked, if that is odd.
    pub mark: Option<Mark>,
}

impl DeliveryRow {
    /// Whether it waits for another delivery of its object or its operation.
    pub(super) fn is_behind_another(&self) -> bool {
        self.state == State::Held
            && matches!(self.reason, Some(Reason::Order | Reason::SameOperation))
    }
}

/// What a held delivery waits for: another of its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The receipt of the other.
    pub receipt: ReceiptId,
    /// The event id of that.
    pub event_id: String,
    /// The state of the other.
    pub state: State,
}

/// One attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRow {
    /// The name of the route.
    pub route: String,
    /// Which attempt since the delivery was recorded or replayed.
    pub number: u32,
    /// How often the delivery had been replayed.
    pub replays: u32,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How long it took; unknown where the worker was lost.
    pub took: Option<Duration>,
    /// How it ended: `processed`, `stale`, `retry`, `snooze`, `dead` or `lost`.
    pub outcome: String,
    /// The consumer's answer, where it is a number.
    pub status: Option<u16>,
    /// What went wrong, or why to come back.
    pub detail: Option<String>,
}

/// How many deliveries of a route are in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The route.
    pub route: RouteNo,
    /// The state, as stored.
    pub state: State,
    /// The reason, as stored.
    pub reason: Option<Reason>,
    /// How many.
    pub count: u64,
    /// When the oldest in this state, of whatever reason, was received.
    pub oldest: Option<Timestamp>,
}

/// A delivery a replay may be about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayCandidate {
    /// Which delivery. For a route that never took the receipt, the one that would be made.
    pub delivery: DeliveryId,
    /// The source of the event.
    pub source: SourceNo,
    /// The type of the event.
    pub event_type: String,
    /// Its state; none if the route never took the receipt.
    pub state: Option<State>,
    /// Why, where it is held or skipped.
    pub reason: Option<Reason>,
    /// Whether a newer version of its object was processed on a route that skips stale events.
    pub stale: bool,
    /// Whether another event of the same operation was processed.
    pub repeated: bool,
    /// Whether an earlier event of its object is open on a route that keeps their order.
    pub held: bool,
    /// Whether its receipt is about to be removed.
    pub expired: bool,
    /// The provider's id of the event.
    pub event_id: String,
}
