//! The embedded store: one file, one writer, commits that are synced before anybody is told.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;
use tracing::warn;

use self::applying::Applying;
use self::clock::StoreClock;
use self::readers::Readers;
use self::release::Round;
use self::watcher::Watcher;
use self::writer::Writer;
use super::{
    BackupProgress, DayStep, ExpireRange, ExpireStep, Health, Purpose, Receipt, ReceiptFilter,
    ReceiptSummary, Repeat, Schema, Store, StoreError, SweepCursor, SweepStep,
};
use crate::clock::{Clock, SystemClock};
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Arrival, ReceiptId, ReceiptMint, Recorded, RouteNo, SecretNo, SourceNo};
use crate::route::RouteRules;

mod activity;
mod acts;
mod apply;
mod applying;
mod backup;
mod begun;
mod claim;
mod clock;
mod connection;
mod desk;
mod effects;
mod expire;
mod finish;
mod guards;
mod keys;
mod known;
mod lanes;
mod ledger;
mod lists;
mod lookup;
mod names;
mod pages;
mod pairings;
mod queue;
mod read;
mod readers;
mod record;
mod release;
mod reopen;
mod replays;
mod rescue;
mod rollups;
mod rows;
mod schema;
mod settle;
mod sweep;
mod tokens;
mod verbs;
mod watcher;
mod writer;

pub(crate) use apply::{Applied, Scope};

/// How the embedded store is opened.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The database file.
    pub path: PathBuf,
    /// The write-ahead log is copied back once it has grown by this much.
    pub wal_checkpoint_bytes: u64,
    /// A write-ahead log this large is reported.
    pub wal_alert_bytes: u64,
    /// A write-ahead log this large refuses new events.
    pub wal_refuse_bytes: u64,
}

impl SqliteOptions {
    /// The ordinary options for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            wal_checkpoint_bytes: limits::WAL_CHECKPOINT_BYTES,
            wal_alert_bytes: limits::WAL_ALERT_BYTES,
            wal_refuse_bytes: limits::WAL_REFUSE_BYTES,
        }
    }
}

/// Receipts in a SQLite file.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    look_ups: Readers,
    clock: StoreClock,
    due: watch::Sender<u64>,
    mint: Arc<ReceiptMint>,
    round: Arc<Round>,
    applying: Arc<Applying>,
    /// Held while this process serves the file.
    serving: Mutex<Option<connection::ServeLock>>,
}

impl SqliteStore {
    /// Opens the file; to serve, it is created and migrated when need be.
    pub async fn open(options: SqliteOptions, purpose: Purpose) -> Result<Self, StoreError> {
        let opened = tokio::task::spawn_blocking(move || Self::open_blocking(&options, purpose));
        opened.await.map_err(|error| StoreError::Unavailable(error.to_string()))?
    }

    fn open_blocking(options: &SqliteOptions, purpose: Purpose) -> Result<Self, StoreError> {
        connection::check_library()?;
        let serving = match purpose {
            Purpose::Serve => {
                connection::create_file(&options.path)?;
                Some(connection::ServeLock::take(&options.path)?)
            }
            Purpose::Operate => None,
        };
        let mut connection = match purpose {
            Purpose::Serve => connection::create(&options.path)?,
            Purpose::Operate => connection::open(&options.path)?,
        };
        match purpose {
            Purpose::Serve => {
                schema::migrate(&mut connection, SystemClock.now())?;
                connection::settle(&connection)?;
                connection::check_pages(&connection)?;
            }
            Purpose::Operate => schema::require_current(&connection)?,
        }
        let clock = StoreClock::start(&connection, purpose)?;
        if purpose == Purpose::Serve {
            rescue::pull_near(&connection, &clock)?;
            rescue::void_leases(&mut connection, &clock)?;
        }
        let mint = Arc::new(read::mint(&connection, SystemClock.now())?);
        let readers = Readers::open(&options.path, limits::SQLITE_READERS)?;
        let look_ups = Readers::open(&options.path, limits::SQLITE_LOOK_UPS)?;
        let watcher = Watcher::new();
        watcher.install(&mut connection).map_err(connection::failure)?;
        let writer = Writer::start(connection, options)?;
        let (due, round) = (watch::Sender::new(0), Arc::default());
        let applying = Applying::new(watcher, clock.clone(), mint.clone(), due.clone());
        let serving = Mutex::new(serving);
        Ok(Self { writer, readers, look_ups, clock, due, mint, round, applying, serving })
    }

    /// Does the first step of filling a route, which is all there is to it if little is open.
    async fn begin_filling(&self, route: RouteNo) -> Result<RouteNo, StoreError> {
        self.writer.run(move |db| lanes::fill(db, Some(route))).await?;
        Ok(route)
    }

    /// Tells workers of this process that a delivery may be due.
    fn announce(&self) {
        self.due.send_modify(|times| *times = times.wrapping_add(1));
    }
}

/// Runs pending migrations.
pub(super) async fn migrate(path: &str) -> Result<Schema, StoreError> {
    let path = PathBuf::from(path);
    blocking(move || {
        connection::check_library()?;
        let mut connection = connection::create(&path)?;
        schema::migrate(&mut connection, SystemClock.now())?;
        schema::status(&connection)
    })
    .await
}

/// Where the schema stands. A file that does not exist has run nothing.
pub(super) async fn schema(path: &str) -> Result<Schema, StoreError> {
    let path = PathBuf::from(path);
    blocking(move || {
        if !Path::new(&path).exists() {
            return Ok(schema::nothing_applied());
        }
        schema::status(&connection::open(&path)?)
    })
    .await
}

/// Copies the file while it may be in use.
pub(super) async fn backup(
    path: &str,
    to: PathBuf,
    overwrite: bool,
    tell: impl Fn(BackupProgress) + Send + 'static,
) -> Result<u64, StoreError> {
    let path = PathBuf::from(path);
    blocking(move || backup::backup(&path, &to, overwrite, &tell)).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| StoreError::Unavailable(error.to_string()))?
}

#[async_trait]
impl Store for SqliteStore {
    fn mint(&self) -> Arc<ReceiptMint> {
        self.mint.clone()
    }

    async fn record(&self, batch: Arc<[Arrival]>) -> Result<Vec<Recorded>, StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        let clock = self.clock.clone();
        let (recorded, due) = self.writer.run(move |db| record::record(db, &clock, &batch)).await?;
        if due {
            self.announce();
        }
        Ok(recorded)
    }

    fn writers(&self) -> usize {
        1
    }

    async fn add_repeats(&self, repeats: Vec<Repeat>) -> Result<(), StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        self.writer.run(move |connection| record::add_repeats(connection, &repeats)).await
    }

    async fn add_stored(&self, bytes: Vec<(SourceNo, i64)>) -> Result<(), StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        self.writer.run(move |connection| names::add_stored(connection, &bytes)).await
    }

    async fn stored(&self) -> Result<Vec<(SourceNo, i64)>, StoreError> {
        self.readers.run(names::stored).await
    }

    async fn register_source(
        &self,
        name: &str,
        renamed_from: Option<&str>,
    ) -> Result<SourceNo, StoreError> {
        let (name, old) = (name.to_owned(), renamed_from.map(str::to_owned));
        self.writer.run(move |db| names::source(db, &name, old.as_deref())).await
    }

    async fn register_route(
        &self,
        name: &str,
        renamed_from: Option<&str>,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        let (name, old) = (name.to_owned(), renamed_from.map(str::to_owned));
        let rules = *rules;
        let route =
            self.writer.run(move |db| names::route(db, &name, old.as_deref(), &rules)).await?;
        self.begin_filling(route).await
    }

    async fn assign_service(&self, route: RouteNo, service: &str) -> Result<(), StoreError> {
        let service = service.to_owned();
        self.writer.run(move |db| names::assign_service(db, route, &service)).await
    }

    async fn register_destination(
        &self,
        name: &str,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        let (name, rules) = (name.to_owned(), *rules);
        let route = self.writer.run(move |db| names::destination(db, &name, &rules)).await?;
        self.begin_filling(route).await
    }

    async fn register_secret(
        &self,
        source: SourceNo,
        fingerprint: &str,
        at: Timestamp,
    ) -> Result<SecretNo, StoreError> {
        let fingerprint = fingerprint.to_owned();
        self.writer.run(move |db| names::secret(db, source, &fingerprint, at)).await
    }

    async fn require_strongest(&self, source: SourceNo) -> Result<bool, StoreError> {
        self.writer.run(move |db| names::require_strongest(db, source)).await
    }

    async fn requiring_strongest(&self) -> Result<Vec<SourceNo>, StoreError> {
        self.readers.run(names::requiring_strongest).await
    }

    async fn remember(
        &self,
        source: SourceNo,
        keys: Vec<IdentityKey>,
        seen_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.writer.run(move |db| record::remember(db, source, &keys, seen_at)).await
    }

    async fn newest(&self) -> Result<Option<ReceiptId>, StoreError> {
        self.readers.run(read::newest).await
    }

    async fn sources(&self) -> Result<Vec<(SourceNo, String)>, StoreError> {
        self.readers.run(names::sources).await
    }

    async fn receipts(&self, filter: &ReceiptFilter) -> Result<Vec<ReceiptSummary>, StoreError> {
        let filter = filter.clone();
        self.readers.run(move |connection| read::receipts(connection, &filter)).await
    }

    async fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        self.readers.run(move |connection| read::receipt(connection, id)).await
    }

    async fn identity(
        &self,
        source: SourceNo,
        event_id: &str,
    ) -> Result<Option<ReceiptId>, StoreError> {
        let key = IdentityKey::of_event(event_id);
        self.readers.run(move |connection| read::identity(connection, source, key)).await
    }

    async fn expire_receipts(&self, range: &ExpireRange) -> Result<ExpireStep, StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        let wanted = range.clone();
        let seen = self.readers.run(move |db| expire::expirable_receipts(db, &wanted)).await?;
        let (step, heads) = seen.into_step();
        if heads.is_empty() {
            return Ok(step);
        }
        let act = range.discard();
        let removed = self.writer.run(move |db| expire::delete_receipts(db, &heads, &act)).await?;
        Ok(ExpireStep { removed, ..step })
    }

    async fn expire_days(&self, range: &ExpireRange) -> Result<DayStep, StoreError> {
        Ok(DayStep { removed: 0, floor: Some(range.before) })
    }

    async fn expire_identities(
        &self,
        from: SweepCursor,
        last_seen_before: &[(SourceNo, i32)],
    ) -> Result<SweepStep, StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        let bounds = last_seen_before.to_vec();
        let guards = self.clock.today() - limits::GUARD_DAYS;
        let seen = self.readers.run(move |db| sweep::sweep(db, &from, &bounds, guards)).await?;
        let mut removed = 0;
        // In slices, so that a commit of new events waits for one of them at most.
        for slice in seen.expired.chunks(limits::EXPIRE_ROWS as usize) {
            let slice = slice.to_vec();
            removed += self.writer.run(move |db| sweep::delete(db, &slice)).await?;
        }
        Ok(SweepStep { next: seen.next, removed })
    }

    async fn health(&self) -> Result<Health, StoreError> {
        self.look_ups.run(read::ping).await?;
        self.writer.health()
    }

    async fn close(&self) {
        let serving = self.serving.lock().expect("no panic while closing").take();
        if serving.is_some() {
            let clock = self.clock.clone();
            if let Err(error) = self.writer.run(move |db| clock.stop(db)).await {
                warn!(%error, "the store was closed without a mark; the next start voids leases");
            }
            self.writer.settle().await;
        }
        self.writer.close(serving).await;
    }
}
