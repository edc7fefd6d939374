//! The shared store: any number of nodes on one PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Object;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tracing::info;

use self::acknowledged::Acknowledged;
use self::claim::Floors;
use self::connect::{Connector, query};
use self::rescue::Rescues;
use self::sessions::Sessions;
use self::wake::Wake;
use super::migrations::{OLDEST_WRITER, Tell};
use super::{
    DayStep, ExpireRange, ExpireStep, Health, Purpose, Receipt, ReceiptFilter, ReceiptSummary,
    Repeat, Schema, Store, StoreError, SweepCursor, SweepStep,
};
use crate::clock::{Clock, SystemClock};
use crate::delivery::DeliveryId;
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Arrival, ReceiptId, ReceiptMint, Recorded, RouteNo, SecretNo, SourceNo};
use crate::route::RouteRules;

mod acknowledged;
mod activity;
mod acts;
mod adopt;
mod apply;
mod begun;
mod claim;
mod columns;
mod connect;
mod days;
mod desk;
mod effects;
mod expire;
mod finish;
mod guards;
mod hosts;
mod keys;
mod lanes;
mod ledger;
mod lists;
mod locks;
mod lookout;
mod lookup;
mod names;
mod odd_receipts;
mod pages;
mod pairings;
mod primary;
mod queue;
mod read;
mod record;
mod reopen;
mod repeats;
mod replays;
mod rescue;
mod rollups;
mod schema;
mod sessions;
mod settle;
mod tls;
mod tokens;
mod unheard;
mod upgrade;
mod verbs;
mod wake;

pub(super) use adopt::{adopt, host_count, hosts};
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
    recording: Sessions,
    /// Connections for claims and outcomes, planned for those.
    working: Sessions,
    /// Connections for what looks for receipts and what goes with them, in the days they lie in.
    daily: Sessions,
    /// Connections for the transactions of handlers: planned as their own statements need it.
    handling: Sessions,
    /// Connections for everything else.
    general: Sessions,
    connector: Connector,
    writers: usize,
    patience: Duration,
    /// How long a claim waits for what another session has locked.
    claim_wait: Duration,
    /// Receipts acknowledged last.
    acknowledged: Arc<Acknowledged>,
    /// Asks the hosts for the primary; ends with the store.
    lookout: std::sync::Mutex<JoinSet<()>>,
    wake: Arc<Wake>,
    mint: Arc<ReceiptMint>,
    /// Tells this process from every other.
    node: String,
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
        lookout::look_around(&connector).await?;
        connector.check().await?;
        let (working, daily) = (limits::POSTGRES_WORKING, limits::POSTGRES_DAILY);
        let others = options.writers + working + daily + 1;
        let general = options.connections.saturating_sub(others).max(1);
        let sessions = |size, purpose| {
            let pool = connector.pool(size, purpose)?;
            Ok::<_, StoreError>(Sessions::new(pool, connector.tls(), options.patience))
        };
        let mut store = Self {
            recording: sessions(options.writers, connect::Use::Recording)?,
            working: sessions(working, connect::Use::Working)?,
            daily: sessions(daily, connect::Use::Daily)?,
            handling: sessions(options.handlers.max(1), connect::Use::General)?,
            general: sessions(general, connect::Use::General)?,
            wake: Arc::new(Wake::start(connector.clone(), purpose)),
            mint: Arc::default(),
            node: String::new(),
            floors: Arc::default(),
            rescues: Rescues::default(),
            last_held: tokio::sync::Mutex::default(),
            connector,
            writers: options.writers,
            patience: options.patience,
            claim_wait: options.claim_wait,
            acknowledged: Arc::default(),
            lookout: std::sync::Mutex::default(),
        };
        let mut client = store.general.get().await?;
        match purpose {
            Purpose::Serve => schema::prepare(&mut client).await?,
            Purpose::Operate => schema::require_current(&client).await?,
        }
        if purpose == Purpose::Serve {
            days::make_ahead(&client).await?;
        }
        let newest = read::newest(&client).await?;
        store.mint = Arc::new(ReceiptMint::after(newest, SystemClock.now()));
        store.node = store.mint.mint(SystemClock.now()).to_string();
        drop(client);
        if purpose == Purpose::Serve {
            store.keep_watch();
        }
        Ok(store)
    }

    /// Starts what looks for another primary, and for acknowledged receipts on it.
    fn keep_watch(&self) {
        let mut tasks = self.lookout.lock().expect("no panic while starting");
        lookout::keep_watch(&self.connector, &mut tasks);
        tasks.spawn(lookout::look_for_acknowledged(
            self.connector.clone(),
            self.general.clone(),
            self.acknowledged.clone(),
        ));
    }

    /// Does the first step of filling a route, which is all there is to it if little is open. If a
    /// delivery is locked, workers go on with it.
    async fn begin_filling(&self, route: RouteNo) {
        let fill = async |client: &mut Object| lanes::fill(client, Some(route)).await;
        if let Err(error) = self.general.write(fill).await {
            info!(%error, "open deliveries could not be given their objects yet");
        }
    }

    /// Whether the role of this store may work on a route.
    pub(crate) async fn may_work_on(&self, route: RouteNo) -> Result<bool, StoreError> {
        self.general.read(async |client| names::may_work(client, route).await).await
    }

    /// How many handlers can have a transaction at the same time.
    pub(crate) fn handlers(&self) -> usize {
        self.handling.most()
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
    lookout::look_around(&connector).await?;
    connector.check().await?;
    let pool = connector.pool(1, connect::Use::General)?;
    let mut client = pool.get().await.map_err(|error| connect::no_connection(&error))?;
    upgrade::up(&mut client, schema::STEPS, OLDEST_WRITER, patience, tell).await
}

/// Where the schema stands.
pub(super) async fn schema(url: &str) -> Result<Schema, StoreError> {
    let connector = Connector::new(url)?;
    lookout::look_around(&connector).await?;
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
        match &recorded {
            Ok(all) => self.acknowledged.note(&batch, all.iter().map(Some)),
            Err(StoreError::Partly { recorded, .. }) => {
                self.acknowledged.note(&batch, recorded.iter().map(Option::as_ref));
            }
            Err(_) => {}
        }
        if batch.iter().any(|arrival| !arrival.takers.is_empty()) {
            self.wake.everywhere();
        }
        recorded
    }

    fn writers(&self) -> usize {
        self.writers
    }

    async fn add_repeats(&self, repeats: Vec<Repeat>) -> Result<(), StoreError> {
        self.general.write(async |client| record::add_repeats(client, &repeats).await).await
    }

    async fn add_stored(&self, bytes: Vec<(SourceNo, i64)>) -> Result<(), StoreError> {
        self.general.write(async |client| names::add_stored(client, &bytes).await).await
    }

    async fn stored(&self) -> Result<Vec<(SourceNo, i64)>, StoreError> {
        self.general.read(async |client| names::stored(client).await).await
    }

    async fn register_source(
        &self,
        name: &str,
        renamed_from: Option<&str>,
    ) -> Result<SourceNo, StoreError> {
        self.general.write(async |client| names::source(client, name, renamed_from).await).await
    }

    async fn register_route(
        &self,
        name: &str,
        renamed_from: Option<&str>,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        let route = self
            .general
            .write(async |client| names::route(client, name, renamed_from, rules).await)
            .await?;
        self.begin_filling(route).await;
        Ok(route)
    }

    async fn assign_service(&self, route: RouteNo, service: &str) -> Result<(), StoreError> {
        self.general.write(async |client| names::assign_service(client, route, service).await).await
    }

    async fn register_destination(
        &self,
        name: &str,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        let register = async |client: &mut Object| names::destination(client, name, rules).await;
        let route = self.general.write(register).await?;
        self.begin_filling(route).await;
        Ok(route)
    }

    async fn register_secret(
        &self,
        source: SourceNo,
        fingerprint: &str,
        at: Timestamp,
    ) -> Result<SecretNo, StoreError> {
        self.general
            .write(async |client| names::secret(client, source, fingerprint, at).await)
            .await
    }

    async fn require_strongest(&self, source: SourceNo) -> Result<bool, StoreError> {
        self.general.write(async |client| names::require_strongest(client, source).await).await
    }

    async fn requiring_strongest(&self) -> Result<Vec<SourceNo>, StoreError> {
        self.general.read(async |client| names::requiring_strongest(client).await).await
    }

    async fn remember(
        &self,
        source: SourceNo,
        keys: Vec<IdentityKey>,
        seen_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.general
            .write(async |client| record::remember(client, source, &keys, seen_at).await)
            .await
    }

    async fn newest(&self) -> Result<Option<ReceiptId>, StoreError> {
        self.general.read(async |client| read::newest(client).await).await
    }

    async fn sources(&self) -> Result<Vec<(SourceNo, String)>, StoreError> {
        self.general.read(async |client| names::sources(client).await).await
    }

    async fn receipts(&self, filter: &ReceiptFilter) -> Result<Vec<ReceiptSummary>, StoreError> {
        self.general.read(async |client| read::receipts(client, filter).await).await
    }

    async fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        self.general.read(async |client| read::receipt(client, id).await).await
    }

    async fn identity(
        &self,
        source: SourceNo,
        event_id: &str,
    ) -> Result<Option<ReceiptId>, StoreError> {
        let key = IdentityKey::of_event(event_id);
        self.general.read(async |client| read::identity(client, source, key).await).await
    }

    async fn expire_receipts(&self, range: &ExpireRange) -> Result<ExpireStep, StoreError> {
        self.daily.write(async |client| expire::receipts(client, range).await).await
    }

    async fn expire_days(&self, range: &ExpireRange) -> Result<DayStep, StoreError> {
        days::expire(self, range).await
    }

    async fn expire_identities(
        &self,
        from: SweepCursor,
        last_seen_before: &[(SourceNo, i32)],
    ) -> Result<SweepStep, StoreError> {
        self.general
            .write(async |client| expire::identities(client, &from, last_seen_before).await)
            .await
    }

    async fn health(&self) -> Result<Health, StoreError> {
        let sql = include_str!("postgres/sql/health.sql");
        let rows = self.general.read(async |client| query(client, sql, &[]).await).await?;
        let Some(row) = rows.first() else {
            return Err(StoreError::Unavailable("the database tells no time".into()));
        };
        if row.get(1) {
            let reason = "the database is a standby in recovery and cannot record";
            return Err(StoreError::Unavailable(reason.into()));
        }
        let missing = self.connector.primary().missing.load(Ordering::Relaxed);
        let warning = (missing > 0).then(|| {
            format!("{missing} acknowledged receipts were missing after a change of primary")
        });
        Ok(Health {
            clock: Some(row.get(0)),
            warning,
            missing_receipts: Some(missing),
            primary_changes: Some(self.connector.primary().changed()),
            ..Health::default()
        })
    }

    async fn prove_commit(&self) -> Result<bool, StoreError> {
        let sql = include_str!("postgres/sql/prove_commit.sql");
        let cut_before = self.connector.sync_waits_cut();
        self.recording.write(async |client| query(client, sql, &[]).await).await?;
        self.connector.is_durable_since(cut_before)?;
        Ok(true)
    }

    async fn close(&self) {
        self.lookout.lock().expect("no panic while stopping").abort_all();
        self.wake.stop().await;
        self.recording.close();
        self.working.close();
        self.daily.close();
        self.handling.close();
        self.general.close();
    }
}
