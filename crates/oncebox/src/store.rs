//! Where receipts are kept: one trait, two databases behind it.
//!
//! The methods are the arrows of the state machine; each is one transaction that the database
//! decides, by a constraint or a compare-and-set. SQL lives only below this module, in files of
//! the same names for each database.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use oncebox_verify::Trust;

use crate::identity::IdentityKey;
use crate::receipt::{
    Arrival, Mark, Oddity, Part, ReceiptId, ReceiptMint, Recorded, RouteNo, SecretNo, SourceNo,
};
use crate::route::RouteRules;

mod activity;
pub(crate) mod checks;
mod desk;
mod health;
mod hosts;
mod keys;
mod ledger;
mod lookup;
mod migrations;
mod nothing;
mod open;
mod pairings;
mod postgres;
mod queue;
mod rollups;
mod sqlite;
mod upkeep;
mod words;

pub use activity::{
    Activity, ActivityNote, Happening, Rejected, RejectedFilter, RejectionNote, SourceActivity,
};
pub use desk::{
    Act, Acted, AttemptRow, AuditRow, Behind, BreakerRow, DeliveryFilter, DeliveryRow, Desk,
    ReplayCandidate, RouteView, Tally,
};
pub use health::Health;
pub use hosts::{HostState, HostView, adopt, host_count, hosts};
pub use keys::{Keys, PublishedKey};
pub use ledger::{EffectConflict, EffectFilter, EffectTally, Ledger};
pub use lookup::{Lookup, NamedEvent, NamedReceipt};
pub use migrations::{BackupProgress, MigrateProgress, Migration, Schema};
pub use nothing::NothingStore;
pub use open::{backup, check_url, migrate, migrate_telling, open, schema};
pub use pairings::{Paired, PairedNo, PairedSecret, Pairing, Pairings};
pub(crate) use postgres::{Ended, Handling, Slot, Took};
pub use postgres::{PostgresOptions, PostgresStore};
pub use queue::{
    BreakerNote, Claim, Claims, Finish, OUTSIDE, Pick, Queue, Rescued, Standing, Unblocked, Wanted,
};
pub use rollups::{ArrivalCount, DeliveryFlow, Span};
pub(crate) use sqlite::{Applied, Scope};
pub use sqlite::{SqliteOptions, SqliteStore};
pub use upkeep::Upkeep;
pub use words::FILLING;

/// A database that keeps receipts. Here is what receiving needs of it; [`Queue`] is for workers,
/// [`Desk`] for operators, [`Lookup`] for what they call things, [`Activity`] for what they watch,
/// [`Ledger`] for effects, [`Pairings`] for secrets that providers set, [`Keys`] for keys that
/// servers share, [`Upkeep`] for what one node does for all.
#[async_trait]
pub trait Store: Queue + Desk + Lookup + Activity + Ledger + Pairings + Keys + Upkeep {
    /// Mints the ids of receipts. All of a process come from here: on SQLite the first half of an
    /// id is the number of its row.
    fn mint(&self) -> Arc<ReceiptMint>;

    /// Records a batch. When this returns `Ok`, every outcome in it, a repeated delivery's
    /// included, is covered by a synced commit that began after the row it speaks of was seen.
    async fn record(&self, batch: Arc<[Arrival]>) -> Result<Vec<Recorded>, StoreError>;

    /// How many batches may be recorded at the same time with profit.
    fn writers(&self) -> usize;

    /// Adds counts of repeated deliveries that were collected in memory.
    async fn add_repeats(&self, repeats: Vec<Repeat>) -> Result<(), StoreError>;

    /// Adds to the bytes that sources keep.
    async fn add_stored(&self, bytes: Vec<(SourceNo, i64)>) -> Result<(), StoreError>;

    /// Bytes of headers and bodies that each source keeps.
    async fn stored(&self) -> Result<Vec<(SourceNo, i64)>, StoreError>;

    /// The stored number of a source, new if its name is new. `renamed_from` keeps the number,
    /// and with it identities and receipts, of a source that changed its name.
    async fn register_source(
        &self,
        name: &str,
        renamed_from: Option<&str>,
    ) -> Result<SourceNo, StoreError>;

    /// The stored number of a route; as for sources. Its rules are stored as given.
    async fn register_route(
        &self,
        name: &str,
        renamed_from: Option<&str>,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError>;

    /// Says which service's workers a route has: keys of effects are told apart by it. Empty is the
    /// service without a name. It is told once: under another service the keys that were taken
    /// would not be found, and their effects would happen again, so that is refused.
    async fn assign_service(&self, route: RouteNo, service: &str) -> Result<(), StoreError>;

    /// Registers a destination for outbox messages: a source and a route that carry them, under
    /// [`OUTBOX`](crate::effect::OUTBOX) and its name. Messages can be written for it from then on;
    /// whoever has it in the configuration relays them: `oncebox serve`, or a `Server` of the
    /// `oncebox-server` crate.
    ///
    /// Of one that is known the rules stay: a service that only writes messages does not take back
    /// what those who relay them have said.
    async fn register_destination(
        &self,
        name: &str,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError>;

    /// The stored number of a secret of a source, told apart by its short fingerprint.
    async fn register_secret(
        &self,
        source: SourceNo,
        fingerprint: &str,
        at: Timestamp,
    ) -> Result<SecretNo, StoreError>;

    /// Notes durably that a request of a source was proved in the strongest way its provider has,
    /// so that weaker proofs count no longer. True for the first to note it.
    async fn require_strongest(&self, source: SourceNo) -> Result<bool, StoreError>;

    /// The sources of which that was noted.
    async fn requiring_strongest(&self) -> Result<Vec<SourceNo>, StoreError>;

    /// Remembers event ids without a receipt, as of events that another receiver has taken: they
    /// are duplicates from now on. Ids in ascending order of their keys are quickest.
    async fn remember(
        &self,
        source: SourceNo,
        keys: Vec<IdentityKey>,
        seen_at: Timestamp,
    ) -> Result<(), StoreError>;

    /// The newest receipt id the store holds, by its own order.
    async fn newest(&self) -> Result<Option<ReceiptId>, StoreError>;

    /// Every source the store has ever seen, configured or not.
    async fn sources(&self) -> Result<Vec<(SourceNo, String)>, StoreError>;

    /// Receipts, newest first.
    async fn receipts(&self, filter: &ReceiptFilter) -> Result<Vec<ReceiptSummary>, StoreError>;

    /// One receipt with everything kept of it.
    async fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, StoreError>;

    /// Whether a receipt is there and its body is not what arrived.
    async fn is_damaged(&self, id: ReceiptId) -> Result<bool, StoreError> {
        Ok(self.receipt(id).await?.is_some_and(|receipt| !receipt.is_intact()))
    }

    /// What the store remembers of an event id, even when its payload has expired.
    async fn identity(
        &self,
        source: SourceNo,
        event_id: &str,
    ) -> Result<Option<ReceiptId>, StoreError>;

    /// Looks at up to [`EXPIRE_ROWS`](crate::limits::EXPIRE_ROWS) receipts between two ids and
    /// removes those of the given sources that no open delivery needs. Deliveries that are held as
    /// twin or conflict are discarded with their receipt, and audited.
    async fn expire_receipts(&self, range: &ExpireRange) -> Result<ExpireStep, StoreError>;

    /// Takes a step towards removing whole days that end before the end of a range, whatever the
    /// source, but for what an open delivery needs. A store that has no days has nothing to do.
    async fn expire_days(&self, range: &ExpireRange) -> Result<DayStep, StoreError>;

    /// Looks at the next [`SWEEP_ROWS`](crate::limits::SWEEP_ROWS) identities and forgets those
    /// last seen before their source's day, unless a delivery of theirs is open.
    async fn expire_identities(
        &self,
        from: SweepCursor,
        last_seen_before: &[(SourceNo, i32)],
    ) -> Result<SweepStep, StoreError>;

    /// Whether the store can record now, and what its clock says.
    async fn health(&self) -> Result<Health, StoreError>;

    /// Commits something that changes nothing, as durably as events are recorded. False: this
    /// store cannot prove it so, and nothing is known.
    async fn prove_commit(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Lets running work end and closes every connection.
    async fn close(&self);
}

/// Why the store did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing was changed, and trying again later may help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),

    /// The connection was lost during the commit: it may or may not have happened.
    #[error("the outcome of a commit is unknown: {0}")]
    UnknownOutcome(String),

    /// Some of a batch was recorded before the store failed. What is known is durable; `None`
    /// stands for an arrival that nothing is known of.
    #[error("only part of a batch was recorded: {reason}")]
    Partly {
        /// What is known, in the order of the batch.
        recorded: Vec<Option<Recorded>>,
        /// Why the rest is not.
        reason: String,
    },

    /// The database refused a value. Nothing was changed, and it will refuse it again.
    #[error("the store refused the data: {0}")]
    Data(String),

    /// The store must not be used again by this process: a sync failed or a page is damaged.
    #[error("the store has failed and must be reopened: {0}")]
    Fatal(String),

    /// Migrations have not run that this program needs. `oncebox migrate up` runs them.
    #[error("the store's schema is not up to date. Run `oncebox migrate up`.")]
    NotMigrated,

    /// The store cannot be used as it is configured.
    #[error("{problem}. {hint}")]
    Unfit {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

impl StoreError {
    pub(crate) fn unfit(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unfit { problem: problem.into(), hint: hint.into() }
    }
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To receive and work. On SQLite only one process may, and a file lock sees to it.
    Serve,
    /// To look or to act once, beside a running server or without one.
    Operate,
}

/// Repeated deliveries of one receipt, collected in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// The receipt they repeat.
    pub receipt: ReceiptId,
    /// How many had the same content.
    pub duplicates: u32,
    /// How many conflicts were recorded as receipts of their own.
    pub conflicts: u32,
    /// How many twins were recorded as receipts of their own.
    pub twins: u32,
    /// The first of them.
    pub first_at: Timestamp,
    /// The last of them.
    pub last_at: Timestamp,
}

/// Which receipts to list.
#[derive(Debug, Clone, Default)]
pub struct ReceiptFilter {
    /// Only of this source. Without one, outbox messages are left out: nobody received them.
    pub source: Option<String>,
    /// Only of this type; `*` stands for any text.
    pub event_type: Option<String>,
    /// Only of this event id.
    pub event_id: Option<String>,
    /// Only about this object.
    pub object: Option<String>,
    /// Only received at or after this time.
    pub since: Option<Timestamp>,
    /// Only received before this time.
    pub until: Option<Timestamp>,
    /// Only those no route took.
    pub unrouted: bool,
    /// Only those that are marked as odd.
    pub odd: bool,
    /// Only older than this one: the last of the page before.
    pub before: Option<ReceiptId>,
    /// How many at most.
    pub limit: usize,
}

/// A receipt in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiptSummary {
    /// Its id.
    pub receipt: ReceiptId,
    /// The name of its source.
    pub source: String,
    /// The provider's id of the event.
    pub event_id: String,
    /// Whether that id is covered by the signature.
    pub trust: Trust,
    /// The provider's type of the event.
    pub event_type: String,
    /// The business thing it is about.
    pub object: Option<String>,
    /// The provider's ordering value.
    pub version: Option<i64>,
    /// When it was received.
    pub received_at: Timestamp,
    /// Length of the body.
    pub bytes: i64,
    /// How it is marked, if it is odd.
    pub mark: Option<Mark>,
    /// Repeated deliveries, if any.
    pub repeats: Option<Repeat>,
    /// Its deliveries.
    pub deliveries: Vec<DeliveryView>,
}

/// A delivery as shown with its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// The name of the route.
    pub route: String,
    /// Its state, in the words of the documentation.
    pub state: String,
    /// Why, where it is held or was skipped.
    pub reason: Option<String>,
    /// How often it was claimed.
    pub attempts: i32,
}

/// Everything kept of one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// What a list shows of it.
    pub summary: ReceiptSummary,
    /// The number of the secret that verified it, and its fingerprint.
    pub secret: (SecretNo, Option<String>),
    /// The time the provider signed, where it signs one.
    pub signed_at: Option<Timestamp>,
    /// The request's headers; see [`decode_headers`](crate::receipt::decode_headers).
    pub headers: Vec<u8>,
    /// The raw body; of an event that came with others, its own part of it.
    pub body: Vec<u8>,
    /// SHA-256 of that, taken when it arrived.
    pub digest: [u8; 32],
    /// The request, where it carried several events.
    pub part: Option<Part>,
    /// Twins and conflicts that name it as the first, oldest first, up to
    /// [`ODD_SHOWN`](crate::limits::ODD_SHOWN).
    pub odd: Vec<OddView>,
}

impl Receipt {
    /// Whether the stored body is still what arrived.
    pub fn is_intact(&self) -> bool {
        checks::is_intact(&self.body, &self.digest)
    }

    /// The body of the request as it was signed.
    pub fn signed_body(&self) -> &[u8] {
        self.part.as_ref().map_or(&self.body, |part| &part.whole)
    }
}

/// A twin or a conflict, as shown with the receipt that came first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddView {
    /// Its own receipt.
    pub receipt: ReceiptId,
    /// What is odd about it.
    pub oddity: Oddity,
    /// The event id it came under.
    pub event_id: String,
    /// The type it came under.
    pub event_type: String,
    /// When it was received.
    pub received_at: Timestamp,
}

/// Which receipts may go.
#[derive(Debug, Clone)]
pub struct ExpireRange {
    /// Start after this one.
    pub after: ReceiptId,
    /// Stop before this one.
    pub before: ReceiptId,
    /// Only of these sources.
    pub sources: Vec<SourceNo>,
    /// When, by the caller's clock: the time that the audit shows.
    pub at: Timestamp,
}

impl ExpireRange {
    /// The act by which retention discards what is held as twin or conflict.
    pub(crate) fn discard(&self) -> Act {
        let why = Some("its payload expired".into());
        Act { who: "retention".into(), via: "retention", why, at: self.at }
    }
}

/// How far a step of expiry came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpireStep {
    /// The last receipt looked at; `None` when the range is exhausted.
    pub next: Option<ReceiptId>,
    /// How many were removed.
    pub removed: usize,
}

/// How far a step over whole days came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayStep {
    /// How many receipts went.
    pub removed: usize,
    /// Once there is nothing more to do: receipts from here on go with their day later on, those
    /// before it one by one.
    pub floor: Option<ReceiptId>,
}

/// Where the sweep over identities stands. Each store has its own order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepCursor(pub(crate) Vec<u8>);

/// How far a step of the sweep came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepStep {
    /// Where to go on; `None` when every identity was looked at.
    pub next: Option<SweepCursor>,
    /// How many were forgotten.
    pub removed: usize,
}

/// The day a time falls on, counted from 1970: how identities remember when they were last seen.
pub fn day_of(time: Timestamp) -> i32 {
    i32::try_from(time.as_second().div_euclid(86_400)).unwrap_or(i32::MAX)
}
