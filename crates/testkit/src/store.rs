//! One suite for both stores: a test is a story that is told a bed, and runs once on each.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use oncebox::receipt::{Arrival, OddRules, Part, ReceiptMint, Recorded, SecretNo, SourceNo};
use oncebox::store::{
    NothingStore, PostgresOptions, PostgresStore, Purpose, ReceiptFilter, ReceiptSummary,
    SqliteOptions, SqliteStore, Store,
};
use oncebox::verify::Trust;
use sha2::{Digest, Sha256};

use crate::postgres;

mod effects;
mod work;

pub use effects::{grouped, key, message, step, under};
pub use work::{LEASE, Route, act, ending, finish, pass, query};

/// A store with nothing in it, and what a story needs to fill it.
pub struct Bed {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// Where it is, to open it again or from beside.
    pub url: String,
    /// The same store, for what only one of the two can do.
    pub opened: Opened,
    /// The source arrivals come in by.
    pub source: SourceNo,
    mint: ReceiptMint,
    _place: Place,
}

/// A store of one kind or the other.
#[derive(Clone)]
pub enum Opened {
    /// Nothing, while it is opened again.
    Nothing,
    /// On SQLite.
    Sqlite(Arc<SqliteStore>),
    /// On PostgreSQL.
    Postgres(Arc<PostgresStore>),
}

impl Opened {
    /// Opens the store a URL names, to serve.
    pub async fn open(url: &str) -> Self {
        match url.strip_prefix("sqlite://") {
            Some(path) => {
                let store = SqliteStore::open(SqliteOptions::new(path), Purpose::Serve).await;
                Self::Sqlite(Arc::new(store.expect("the store opens")))
            }
            None => {
                let store = PostgresStore::open(PostgresOptions::new(url), Purpose::Serve).await;
                Self::Postgres(Arc::new(store.expect("the store opens")))
            }
        }
    }

    /// The store, of whichever kind.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Nothing => Arc::new(NothingStore),
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }
}

/// What goes away with the bed.
enum Place {
    Folder(#[expect(dead_code, reason = "held for its Drop")] tempfile::TempDir),
    Database(#[expect(dead_code, reason = "held for its Drop")] postgres::Database),
}

/// A PostgreSQL database of one's own with a schema and nothing in it: a copy, because that is
/// faster than making the schema again. Blocks.
///
/// # Panics
///
/// When there is no server.
pub fn database() -> postgres::Database {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    let server = postgres::shared();
    if !server.is_private() {
        return server.database();
    }
    let template = TEMPLATE.get_or_init(|| {
        // It goes with the server.
        let database = server.database();
        let made = std::thread::scope(|scope| scope.spawn(|| make_schema(database.url())).join());
        made.expect("a schema");
        database.name().to_owned()
    });
    server.database_like(template)
}

fn make_schema(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async { Opened::open(url).await.store().close().await });
}

/// The time most stories happen at.
pub const NOON: i64 = 1_760_000_000;

impl Bed {
    /// A bed on a SQLite file of its own.
    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite://{}", folder.path().join("oncebox.db").display());
        Self::open(url, Place::Folder(folder)).await
    }

    /// A bed in a PostgreSQL database of its own.
    pub async fn postgres() -> Self {
        let database = tokio::task::spawn_blocking(database);
        Self::in_database(database.await.expect("a database")).await
    }

    /// A bed in a database of whichever server.
    pub async fn in_database(database: postgres::Database) -> Self {
        Self::open(database.url().to_owned(), Place::Database(database)).await
    }

    async fn open(url: String, place: Place) -> Self {
        let opened = Opened::open(&url).await;
        let store = opened.store();
        let source = store.register_source("stripe-live", None).await.expect("a source");
        Self { store, url, opened, source, mint: ReceiptMint::new(), _place: place }
    }

    /// Closes the store and opens it again, as after a restart.
    pub async fn reopen(&mut self) {
        self.store.close().await;
        self.crash().await;
    }

    /// Opens the store again as after a crash: nothing was closed.
    pub async fn crash(&mut self) {
        self.opened = Opened::Nothing;
        self.store = self.opened.store();
        self.opened = Opened::open(&self.url).await;
        self.store = self.opened.store();
    }

    /// An event with a signed id, as it comes from verification.
    pub fn arrival(&self, event_id: &str, body: &str) -> Arrival {
        self.arrival_at(event_id, body, time(NOON))
    }

    /// An event received at a time of one's own.
    pub fn arrival_at(&self, event_id: &str, body: &str, received_at: Timestamp) -> Arrival {
        let digest: [u8; 32] = Sha256::digest(body).into();
        Arrival {
            receipt: self.mint.mint(received_at),
            source: self.source,
            received_at,
            event_id: event_id.into(),
            trust: Trust::Signed,
            event_type: "invoice.paid".into(),
            object: Some("in_456".into()),
            version: Some(7),
            secret: SecretNo(1),
            signed_at: None,
            headers: Bytes::from_static(b"content-type: application/json\n"),
            body: Bytes::copy_from_slice(body.as_bytes()),
            digest,
            content: digest,
            guard: None,
            odd_rules: OddRules::default(),
            has_room: true,
            is_defective: false,
            takers: Vec::new(),
            part: None,
        }
    }

    /// An event whose id nobody signed.
    pub fn unsigned(&self, event_id: &str, body: &str) -> Arrival {
        self.unsigned_at(event_id, body, time(NOON))
    }

    /// An event whose id nobody signed, received at a time of one's own.
    pub fn unsigned_at(&self, event_id: &str, body: &str, received_at: Timestamp) -> Arrival {
        let arrival = self.arrival_at(event_id, body, received_at);
        Arrival { trust: Trust::Transport, guard: Some(arrival.content), ..arrival }
    }

    /// The events of one request: a list of their bodies, each a piece of the whole.
    pub fn request(&self, events: &[(&str, &str)]) -> Vec<Arrival> {
        let bodies: Vec<&str> = events.iter().map(|(_, body)| *body).collect();
        let whole = Bytes::from(format!("[{}]", bodies.join(",")));
        let mut arrivals: Vec<Arrival> =
            events.iter().map(|(event_id, body)| self.arrival(event_id, body)).collect();
        let Some(request) = arrivals.first().map(|first| first.receipt) else { return arrivals };
        let count = u32::try_from(arrivals.len()).expect("a request of some size");
        let mut start = 1;
        for (position, arrival) in (0..).zip(&mut arrivals) {
            arrival.body = whole.slice(start..start + arrival.body.len());
            start += arrival.body.len() + 1;
            arrival.part = Some(Part { request, position, count, whole: whole.clone() });
        }
        arrivals
    }

    /// Records arrivals as one batch.
    pub async fn record(&self, batch: Vec<Arrival>) -> Vec<Recorded> {
        self.store.record(batch.into()).await.expect("the batch is recorded")
    }

    /// Everything recorded, oldest first.
    pub async fn receipts(&self) -> Vec<ReceiptSummary> {
        let filter = ReceiptFilter { limit: 10_000, ..ReceiptFilter::default() };
        let mut receipts = self.store.receipts(&filter).await.expect("a list");
        receipts.reverse();
        receipts
    }

    /// The event ids of everything recorded, oldest first.
    pub async fn event_ids(&self) -> Vec<String> {
        self.receipts().await.into_iter().map(|receipt| receipt.event_id).collect()
    }
}

/// A time in seconds since 1970.
pub fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time within reach")
}

/// Waits until something holds that nobody signals, yielding meanwhile.
pub async fn until(condition: impl Fn() -> bool) {
    let patience = std::time::Instant::now() + crate::wait::DEADLINE;
    while !condition() {
        assert!(std::time::Instant::now() < patience, "waited too long");
        tokio::task::yield_now().await;
    }
}

/// Runs stories, `async fn story(bed: Bed)`, on each store.
#[macro_export]
macro_rules! for_each_store {
    ($($story:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story($crate::store::Bed::sqlite().await).await;
                }
            )*
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story($crate::store::Bed::postgres().await).await;
                }
            )*
        }
    };
}
