//! The shared store: any number of nodes on one PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool};
use jiff::Timestamp;

use self::claim::Floors;
use self::connect::{Connector, failure};
use self::rescue::Rescues;
use self::sessions::Sessions;
use self::wake::Wake;
use super::migrations::{OLDEST_WRITER, Tell};
use super::{
    ExpireRange, ExpireStep, Health, Purpose, Receipt, ReceiptFilter, ReceiptSummary, Repeat,
    Schema, Store, StoreError, SweepCursor, SweepStep,
};
use crate::clock::{Clock, SystemClock};
use crate::delivery::DeliveryId;
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Arrival, ReceiptId, ReceiptMint, Recorded, RouteNo, SecretNo, SourceNo};
use crate::route::RouteRules;

mod acts;
mod apply;
mod begun;
mod claim;
mod columns;
mod connect;
mod desk;
mod effects;
mod expire;
mod finish;
mod guards;
mod ledger;
mod lists;
mod locks;
mod names;
mod pages;
mod pairings;
mod queue;
mod read;
mod record;
mod reopen;
mod replays;
mod rescue;
mod schema;
mod sessions;
mod settle;
mod tls;
mod tokens;
mod unheard;
mod upgrade;
mod verbs;
mod wake;

pub(crate) use apply::{Ended, Handling, Slot, Took};

/// How the shared store is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The URL, with as many hosts as there are.
    pub url: String,
    /// Batches committing at the same time.
    pub writers: usize,
    /// Connections in all, but for those of handlers.
    pub connections: usize,
    /// Connections for the transactions of handlers in Rust, opened when they are needed.
    pub handlers: usize,
    /// How long a batch waits on a connection that says nothing.
    pub patience: Duration,
    /// How long deliveries wait for what another session has locked.
    pub lock_wait: Duration,
    /// How long a claim waits for those, before it goes around what is behind them.
    pub claim_wait: Duration,
    /// How long a session may hold locks and do nothing before the server ends it.
    pub idle: Duration,
}

impl PostgresOptions {
    /// The ordinary options for a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            writers: limits::POSTGRES_WRITERS,
            connections: limits::POSTGRES_CONNECTIONS,
            handlers: limits::POSTGRES_HANDLERS,
            patience: limits::POSTGRES_PATIENCE,
            lock_wait: limits::POSTGRES_LOCK_WAIT,
            claim_wait: limits::POSTGRES_CLAIM_WAIT,
            idle: limits::POSTGRES_IDLE,
        }
    }
}

impl std::fmt::Debug for PostgresOptions {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("writers", &self.writers)
            .field("connections", &self.connections)
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

/// Receipts in the schema `oncebox` of a PostgreSQL database.
pub struct PostgresStore {
    /// Connections that only record batches, planned for that.
    recording: Pool,
    /// Connections for claims, outcomes and payloads, planned for those.
    working: Sessions,
    /// Connections for the transactions of handlers: planned as their own statements need it.
    handling: Sessions,
    /// Connections for everything else.
    general: Sessions,
    connector: Connector,
    writers: usize,
    patience: Duration,
    /// How long a claim waits for what another session has locked.
    claim_wait: Duration,
    /// Silent connections given up since one has answered.
    given_up: AtomicUsize,
    wake: Arc<Wake>,
    mint: Arc<ReceiptMint>,
    floors: Arc<Floors>,
    rescues: Rescues,
    /// The last held delivery that was looked at to see whether it can go.
    last_held: tokio::sync::Mutex<Option<DeliveryId>>,
}

impl PostgresStore {
    /// Connects and checks that commits are synced. To serve, an empty database gets its schema,
    /// and one with pending migrations is refused as [`StoreError::NotMigrated`] until they have
    /// run.
    pub async fn open(options: PostgresOptions, purpose: Purpose) -> Result<Self, StoreError> {
        let connector = Connector::new(&options.url)?.for_purpose(purpose).with_limits(&options);
        connector.check().await?;
        let working = limits::POSTGRES_WORKING;
        let general = options.connections.saturating_sub(options.writers + working + 1).max(1);
        let sessions = |size, purpose| {
            Ok::<_, StoreError>(Sessions::new(connector.pool(size, purpose)?, options.patience))
        };
        let mut store = Self {
            recording: connector.pool(options.writers, connect::Use::Recording)?,
            working: sessions(working, connect::Use::Working)?,
            handling: sessions(options.handlers.max(1), connect::Use::General)?,
            general: sessions(general, connect::Use::General)?,
            wake: Arc::new(Wake::start(connector.clone(), purpose)),
            mint: Arc::default(),
            floors: Arc::default(),
            rescues: Rescues::default(),
            last_held: tokio::sync::Mutex::default(),
            connector,
            writers: options.writers,
            patience: options.patience,
            claim_wait: options.claim_wait,
            given_up: AtomicUsize::new(0),
        };
        let mut client = store.connection().await?;
        match purpose {
            Purpose::Serve => schema::prepare(&mut client).await?,
            Purpose::Operate => schema::require_current(&client).await?,
        }
        let newest = read::newest(&client).await?;
        store.mint = Arc::new(ReceiptMint::after(newest, SystemClock.now()));
        drop(client);
        Ok(store)
    }

    /// How many handlers can have a transaction at the same time.
    pub(crate) fn handlers(&self) -> usize {
        self.handling.most()
    }

    /// A connection for lists and acts.
    async fn connection(&self) -> Result<Object, StoreError> {
        self.general.get().await
    }
}

/// Says what is wrong with a URL, without connecting.
pub(super) fn check_url(url: &str) -> Result<(), StoreError> {
    Connector::new(url).map(drop)
}

/// Runs pending migrations beside running nodes.
pub(super) async fn migrate(
    url: &str,
    patience: Duration,
    tell: Tell<'_>,
) -> Result<Schema, StoreError> {
    let connector = Connector::new(url)?.for_purpose(Purpose::Serve);
    connector.check().await?;
    let pool = connector.pool(1, connect::Use::General)?;
    let mut client = pool.get().await.map_err(|error| connect::no_connection(&error))?;
    upgrade::up(&mut client, schema::STEPS, OLDEST_WRITER, patience, tell).await
}

/// Where the schema stands.
pub(super) async fn schema(url: &str) -> Result<Schema, StoreError> {
    let connector = Connector::new(url)?;
    connector.check().await?;
    let pool = connector.pool(1, connect::Use::General)?;
    let client = pool.get().await.map_err(|error| connect::no_connection(&error))?;
    schema::status(&client).await
}

#[async_trait]
impl Store for PostgresStore {
    fn mint(&self) -> Arc<ReceiptMint> {
        self.mint.clone()
    }

    async fn record(&self, batch: Arc<[Arrival]>) -> Result<Vec<Recorded>, StoreError> {
        let recorded = record::record(self, &batch).await;
        if batch.iter().any(|arrival| !arrival.takers.is_empty()) {
            self.wake.everywhere();
        }
        recorded
    }

    fn writers(&self) -> usize {
        self.writers
    }

    async fn add_repeats(&self, repeats: Vec<Repeat>) -> Result<(), StoreError> {
        record::add_repeats(&self.connection().await?, &repeats).await
    }

    async fn add_stored(&self, bytes: Vec<(SourceNo, i64)>) -> Result<(), StoreError> {
        names::add_stored(&self.connection().await?, &bytes).await
    }

    async fn stored(&self) -> Result<Vec<(SourceNo, i64)>, StoreError> {
        names::stored(&self.connection().await?).await
    }

    async fn register_source(
        &self,
        name: &str,
        renamed_from: Option<&str>,
    ) -> Result<SourceNo, StoreError> {
        names::source(&mut self.connection().await?, name, renamed_from).await
    }

    async fn register_route(
        &self,
        name: &str,
        renamed_from: Option<&str>,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        names::route(&mut self.connection().await?, name, renamed_from, rules).await
    }

    async fn register_destination(
        &self,
        name: &str,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        names::destination(&mut self.connection().await?, name, rules).await
    }

    async fn register_secret(
        &self,
        source: SourceNo,
        fingerprint: &str,
        at: Timestamp,
    ) -> Result<SecretNo, StoreError> {
        names::secret(&mut self.connection().await?, source, fingerprint, at).await
    }

    async fn remember(
        &self,
        source: SourceNo,
        keys: Vec<IdentityKey>,
        seen_at: Timestamp,
    ) -> Result<(), StoreError> {
        record::remember(&self.connection().await?, source, &keys, seen_at).await
    }

    async fn newest(&self) -> Result<Option<ReceiptId>, StoreError> {
        read::newest(&self.connection().await?).await
    }

    async fn sources(&self) -> Result<Vec<(SourceNo, String)>, StoreError> {
        names::sources(&self.connection().await?).await
    }

    async fn receipts(&self, filter: &ReceiptFilter) -> Result<Vec<ReceiptSummary>, StoreError> {
        read::receipts(&self.connection().await?, filter).await
    }

    async fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        read::receipt(&self.connection().await?, id).await
    }

    async fn identity(
        &self,
        source: SourceNo,
        event_id: &str,
    ) -> Result<Option<ReceiptId>, StoreError> {
        let key = IdentityKey::of_event(event_id);
        read::identity(&self.connection().await?, source, key).await
    }

    async fn expire_receipts(&self, range: &ExpireRange) -> Result<ExpireStep, StoreError> {
        self.working.write(async |client| expire::receipts(client, range).await).await
    }

    async fn expire_identities(
        &self,
        from: SweepCursor,
        last_seen_before: &[(SourceNo, i32)],
    ) -> Result<SweepStep, StoreError> {
        expire::identities(&self.connection().await?, &from, last_seen_before).await
    }

    async fn health(&self) -> Result<Health, StoreError> {
        let client = self.connection().await?;
        let statement = client
            .prepare_cached(include_str!("postgres/sql/health.sql"))
            .await
            .map_err(failure)?;
        let row = client.query_one(&statement, &[]).await.map_err(failure)?;
        if row.get(1) {
            let reason = "the database is a standby in recovery and cannot record";
            return Err(StoreError::Unavailable(reason.into()));
        }
        Ok(Health { clock: Some(row.get(0)), wal_bytes: None, warning: None })
    }

    async fn close(&self) {
        self.wake.stop().await;
        self.recording.close();
        self.working.close();
        self.handling.close();
        self.general.close();
    }
}
