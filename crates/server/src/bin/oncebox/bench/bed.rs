//! A store with business code on it: events are recorded before, and then worked off.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Claimed, Next, Outcome, Payload};
use oncebox::handler::{HandlerOptions, HandlerStore, Handlers, PostgresHandler, SqliteHandler};
use oncebox::limits;
use oncebox::receipt::{Arrival, RouteNo, SourceNo, Taker};
use oncebox::route::RouteRules;
use oncebox::store::{PostgresOptions, PostgresStore, Purpose, SqliteOptions, SqliteStore, Store};
use oncebox::worker::{Consumer, Observer, Report, WorkRoute, Worker, WorkerOptions};
use tokio::sync::watch;
use tokio_postgres::NoTls;

use super::business::TABLE;
use super::subject::Subject;
use crate::exit::Failure;

/// The route whose deliveries are worked off.
pub(crate) const ROUTE: &str = "bench";

/// The destination of messages.
pub(crate) const DESTINATION: &str = "bench";

/// A store, opened as handlers need it.
#[derive(Clone)]
enum Opened {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

/// A store with a source, a route, a destination and a table of the service.
pub(crate) struct Bed {
    opened: Opened,
    source: SourceNo,
    pub(crate) route: RouteNo,
    /// Bytes of a body.
    size: usize,
    recorded: u64,
}

impl Bed {
    pub(crate) async fn new(subject: &Subject, size: usize) -> Result<Self, Failure> {
        let opened = match subject {
            Subject::Postgres(url) => {
                let options = PostgresOptions::new(url);
                let store = PostgresStore::open(options, Purpose::Serve).await?;
                create_table(url).await?;
                Opened::Postgres(Arc::new(store))
            }
            Subject::Sqlite(path) => {
                let store = SqliteStore::open(SqliteOptions::new(path), Purpose::Serve).await?;
                store.with(|db| db.execute_batch(TABLE)).await?.map_err(failed)?;
                Opened::Sqlite(Arc::new(store))
            }
            Subject::Nothing => return Err(Failure::failed("effects need a store")),
        };
        let (store, rules) = (opened.store(), RouteRules::default());
        store.register_destination(DESTINATION, &rules).await?;
        let source = store.register_source("bench", None).await?;
        let route = store.register_route(ROUTE, None, &rules).await?;
        Ok(Self { opened, source, route, size, recorded: 0 })
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.opened.store()
    }

    /// How many events were recorded; the number of the next.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Records events, each with a number of its own, from where it left off.
    pub(crate) async fn record(&mut self, count: u64) -> Result<(), Failure> {
        let (store, end) = (self.store(), self.recorded + count);
        while self.recorded < end {
            let batch = (end - self.recorded).min(limits::BATCH_EVENTS as u64);
            let events: Vec<Arrival> =
                (0..batch).map(|more| self.event(self.recorded + more)).collect();
            store.record(events.into()).await?;
            self.recorded += batch;
        }
        Ok(())
    }

    fn event(&self, number: u64) -> Arrival {
        let now = SystemClock.now();
        let receipt = self.store().mint().mint(now);
        let body = body(number, self.size);
        let id = format!("evt_1{number:016}");
        let event = Arrival::new(receipt, self.source, now, id, "invoice.paid", body);
        Arrival { takers: vec![Taker::plain(self.route)], ..event }
    }

    /// Works off what was recorded by a consumer that does nothing.
    pub(crate) async fn do_nothing(&self, count: u64) -> Result<Duration, Failure> {
        let counter = Arc::new(Counter::new(count));
        let route = WorkRoute {
            number: self.route,
            name: ROUTE.into(),
            rules: RouteRules::default(),
            concurrency: self.opened.places(),
            rate: None,
            lease: None,
            consumer: Arc::new(Nothing),
        };
        let options = WorkerOptions { observer: counter.clone(), ..WorkerOptions::default() };
        let began = Instant::now();
        let worker = Worker::start(self.store(), vec![route], options);
        counter.all().await?;
        let took = began.elapsed();
        worker.stop(limits::HANDLER_GRACE).await;
        Ok(took)
    }

    /// Works off what was recorded by a handler.
    pub(crate) async fn handle<H>(&self, count: u64, handler: H) -> Result<Duration, Failure>
    where
        H: SqliteHandler + PostgresHandler,
    {
        let counter = Arc::new(Counter::new(count));
        let worker = WorkerOptions { observer: counter.clone(), ..WorkerOptions::default() };
        let options = HandlerOptions { worker, ..HandlerOptions::default() };
        let began = Instant::now();
        let worker = match &self.opened {
            Opened::Sqlite(store) => {
                Handlers::new(store.clone()).on("*", "*", handler).start(ROUTE, options).await?
            }
            Opened::Postgres(store) => {
                Handlers::new(store.clone()).on("*", "*", handler).start(ROUTE, options).await?
            }
        };
        counter.all().await?;
        let took = began.elapsed();
        worker.stop().await;
        Ok(took)
    }

    pub(crate) async fn close(self) {
        self.store().close().await;
    }
}

impl Opened {
    fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    fn places(&self) -> usize {
        match self {
            Self::Sqlite(store) => store.places(),
            Self::Postgres(store) => store.places(),
        }
    }
}

/// The table of the service, made on a connection of its own.
async fn create_table(url: &str) -> Result<(), Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
    tokio::spawn(connection);
    // A role may have a schema of its own name, and be called as ours is.
    let sql = format!("SET search_path TO public; {TABLE}");
    client.batch_execute(&sql).await.map_err(failed)
}

/// A payload with a number in it.
fn body(number: u64, size: usize) -> Bytes {
    let head = format!("{{\"number\":{number},\"padding\":\"");
    let padding = size.saturating_sub(head.len() + 2);
    let mut body = head.into_bytes();
    // Not all the same, which would compress to nothing.
    body.extend((0..padding).map(|at| b'a' + ((at * at + at * 7 + at / 26) % 26) as u8));
    body.extend(b"\"}");
    body.into()
}

struct Nothing;

#[async_trait]
impl Consumer for Nothing {
    async fn deliver(&self, _: &Claimed, _: Payload) -> Report {
        Report::of(Outcome::Processed)
    }
}

/// Counts what was processed, down to none left.
struct Counter {
    left: watch::Sender<u64>,
    /// Why something was not processed.
    wrong: Mutex<Option<String>>,
}

impl Counter {
    fn new(count: u64) -> Self {
        Self { left: watch::Sender::new(count), wrong: Mutex::default() }
    }

    /// Waits for all of them.
    async fn all(&self) -> Result<(), Failure> {
        let mut left = self.left.subscribe();
        left.wait_for(|left| *left == 0).await.expect("the sender lives in self");
        match self.wrong.lock().expect("no panic while noting").take() {
            Some(why) => Err(Failure::failed(format!("a delivery was not processed: {why}"))),
            None => Ok(()),
        }
    }
}

impl Observer for Counter {
    fn attempted(&self, _: &str, _: &Claimed, next: Next, report: &Report, _: Duration) {
        if next == Next::Processed {
            self.left.send_modify(|left| *left = left.saturating_sub(1));
            return;
        }
        let why = report.detail.clone().unwrap_or_else(|| "it does not say why".into());
        *self.wrong.lock().expect("no panic while noting") = Some(why);
        self.left.send_replace(0);
    }
}

/// An error of the database outside the store.
pub(crate) fn failed(error: impl std::error::Error) -> Failure {
    let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
    Failure::failed(format!("the database: {error}{why}"))
}
