//! A server, the tables of a service, and somebody who takes its mail.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oncebox::clock::{Clock as _, SystemClock};
use oncebox::handler::{HandlerOptions, HandlerWorker, Handlers};
use oncebox::receipt::ReceiptId;
use oncebox::replay::{Driver, How, Phase, Replay, ReplayFilter};
use oncebox::worker::WorkerOptions;
use oncebox_server::api::token::mint;
use oncebox_server::config::{Config, Environment};
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::http::{Answer, AsyncConnection};
use oncebox_testkit::store::{Bed, LEASE, Opened, Route, act, query};
use oncebox_testkit::wait;
use oncebox_verify::{Draft, Secret, catalogue, sign};
use tokio::sync::watch;

use crate::business::{Business, mail_key};
use crate::{http, rust, sql};

const SECRET: &str = "whsec_doors_0";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Rust,
    Sql,
    Http,
}

impl Door {
    /// The route of a service behind this door.
    pub(crate) fn route(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Sql => "sql",
            Self::Http => "http",
        }
    }
}

/// A server whose events are taken by a route for each of some doors.
pub(crate) struct Shop {
    pub(crate) bed: Bed,
    pub(crate) business: Business,
    pub(crate) mailer: Destination,
    server: Server,
    token: String,
    /// A folder for tables that share no transaction with the store.
    beside: tempfile::TempDir,
}

impl Shop {
    /// With handlers of its own in the server where `inside`; else workers come beside it.
    pub(crate) async fn open(bed: Bed, doors: &[Door], business: Business, inside: bool) -> Self {
        let mailer = Destination::start();
        let config = config(doors, &mailer);
        // Retries of a few milliseconds are looked for as often.
        let worker = WorkerOptions { poll: Duration::from_millis(5), ..WorkerOptions::default() };
        let mut options = StartOptions { worker, ..ingest_options(&config.server).into() };
        if inside {
            let handlers = rust::consumer(&bed.opened, &business);
            options.handlers = [(Door::Rust.route().to_owned(), handlers)].into();
        }
        let listeners = Listeners::bind(&config).await.unwrap();
        let clock = Arc::new(SystemClock);
        let server = Server::start(config, bed.store.clone(), clock, options, listeners);
        let server = server.await.unwrap();
        let scopes = vec!["pull".parse().unwrap()];
        let (token, text) = mint("worker", scopes, SystemClock.now(), None).unwrap();
        bed.store.create_token(&token, &act("a test")).await.unwrap();
        let beside = tempfile::tempdir().unwrap();
        let shop = Self { bed, business, mailer, server, token: text, beside };
        for door in doors {
            shop.make_tables(*door);
        }
        shop
    }

    fn make_tables(&self, door: Door) {
        let url = self.tables(door);
        let schema = schema(&url);
        // Nothing is unique but the invoice: what happened twice is there twice.
        for table in [
            "paid (invoice TEXT NOT NULL, route TEXT NOT NULL)",
            "emails (invoice TEXT NOT NULL)",
            "stages (name TEXT NOT NULL)",
            "visits (event TEXT NOT NULL)",
            "invoices (id TEXT PRIMARY KEY, version BIGINT NOT NULL)",
        ] {
            query(&url, &format!("CREATE TABLE IF NOT EXISTS {schema}.{table}"));
        }
    }

    /// Where the tables of the service behind a door are.
    fn tables(&self, door: Door) -> String {
        match door {
            Door::Http => format!("sqlite://{}", self.beside.path().join("business.db").display()),
            Door::Rust | Door::Sql => self.bed.url.clone(),
        }
    }

    /// A worker behind a door.
    pub(crate) async fn worker(&self, door: Door) -> Worker {
        let business = self.business.clone();
        match (door, &self.bed.opened) {
            (Door::Rust, Opened::Sqlite(store)) => {
                let handlers = Handlers::new(store.clone()).on("*", "*", business);
                Worker::Rust(handlers.by_hand("rust", by_hand()).await.unwrap())
            }
            (Door::Rust, Opened::Postgres(store)) => {
                let handlers = Handlers::new(store.clone()).on("*", "*", business);
                Worker::Rust(handlers.by_hand("rust", by_hand()).await.unwrap())
            }
            (Door::Rust, Opened::Nothing) => panic!("there is no store"),
            (Door::Sql, _) => Worker::Sql(sql::Worker::open(&self.bed.url, &business).await),
            (Door::Http, _) => {
                let (api, file) = (self.server.admin, self.beside.path().join("business.db"));
                Worker::Http(http::Worker::open(api, &self.token, &file, business))
            }
        }
    }

    /// Posts an event as its provider does.
    pub(crate) async fn post(&self, id: &str, invoice: &str, version: i64) -> Answer {
        let body = format!(
            "{{\"id\":\"{id}\",\"object\":\"event\",\"type\":\"invoice.paid\",\
             \"created\":{version},\"data\":{{\"object\":{{\"id\":\"{invoice}\"}}}}}}"
        );
        post_signed(self.server.public, body.into_bytes()).await
    }

    /// Posts an event that must be new; tells its receipt.
    pub(crate) async fn event(&self, id: &str, invoice: &str, version: i64) -> ReceiptId {
        let answer = self.post(id, invoice, version).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["receipt"].as_str().unwrap().parse().unwrap()
    }

    /// Opens deliveries of receipts again, whatever became of them, and returns once all are.
    pub(crate) async fn replay(&self, receipts: &[ReceiptId]) {
        let store = &self.bed.store;
        let filter = ReplayFilter { receipts: receipts.to_vec(), ..ReplayFilter::default() };
        let (how, why) = (How { force: true, ignore_stale: false }, act("once more"));
        let job = Replay::new(filter, how, 0, &why);
        store.create_replay(&job, &why).await.unwrap();
        let (_go_on, stop) = watch::channel(false);
        let patience = Instant::now() + wait::DEADLINE;
        // The server drives replays, too, if it sees them first.
        while store.replay(job.id).await.unwrap().unwrap().phase == Phase::Running {
            assert!(Instant::now() < patience, "the replay does not end");
            if let Some(driver) = Driver::take(store, Some(job.id)).await.unwrap() {
                driver.run(|_| {}, stop.clone()).await.unwrap();
            }
        }
    }

    /// A column of a table of the service behind a door, in order.
    pub(crate) fn column(&self, door: Door, table: &str, column: &str) -> Vec<String> {
        let url = self.tables(door);
        let sql = format!("SELECT {column} FROM {}.{table} ORDER BY 1", schema(&url));
        query(&url, &sql).lines().map(str::to_owned).collect()
    }

    /// The deliveries of a door, oldest first.
    pub(crate) async fn states(&self, door: Door) -> Vec<String> {
        let live = self.server.inbox.live();
        let route = live.routes.find(door.route()).expect("a route");
        self.bed.states(&Route { no: route.number, rules: route.rules }).await
    }

    /// How many events were recorded, messages not counted.
    pub(crate) fn events(&self) -> usize {
        let sql = "SELECT count(*) FROM receipts WHERE event_type <> 'message'";
        self.bed.query(sql).parse().unwrap()
    }

    /// Deliveries that somebody has still to work on, messages not counted.
    pub(crate) fn left(&self) -> usize {
        let sql = "SELECT count(*) FROM deliveries AS d JOIN routes AS t ON t.no = d.route
                   WHERE t.name NOT LIKE 'outbox/%'";
        self.bed.query(sql).parse().unwrap()
    }

    /// One message for each invoice is in the outbox, and the mailer gets each once.
    #[track_caller]
    pub(crate) fn assert_mailed(&self, invoices: &[String]) {
        let mut keys: Vec<String> = invoices.iter().map(|invoice| mail_key(invoice)).collect();
        keys.sort_unstable();
        let messages = "SELECT event_id FROM receipts WHERE event_type = 'message'";
        let mut messages: Vec<String> =
            self.bed.query(messages).lines().map(str::to_owned).collect();
        messages.sort_unstable();
        assert_eq!(messages, keys);
        let open = "SELECT count(*) FROM deliveries AS d JOIN routes AS t ON t.no = d.route
                    WHERE t.name = 'outbox/mailer'";
        tokio::task::block_in_place(|| {
            wait::until("the mail is out", || self.bed.query(open) == "0");
        });
        let requests = self.mailer.requests();
        let mut came: Vec<_> =
            requests.iter().filter_map(|mail| mail.header("idempotency-key")).collect();
        came.sort_unstable();
        assert_eq!(came, keys);
    }
}

fn by_hand() -> HandlerOptions {
    let worker = WorkerOptions { lease: LEASE, ..WorkerOptions::default() };
    HandlerOptions { worker, ..HandlerOptions::default() }
}

/// A worker behind one of the doors.
pub(crate) enum Worker {
    Rust(HandlerWorker),
    Sql(sql::Worker),
    Http(http::Worker),
}

impl Worker {
    /// Works on what is due now. Says how many deliveries that were.
    pub(crate) async fn pass(&mut self) -> usize {
        match self {
            Self::Rust(worker) => worker.work_off().await.unwrap(),
            Self::Sql(worker) => worker.pass().await,
            Self::Http(worker) => worker.pass().await,
        }
    }

    /// Works until so many attempts were made.
    pub(crate) async fn work(&mut self, attempts: usize) {
        let patience = Instant::now() + wait::DEADLINE;
        let mut made = 0;
        while made < attempts {
            assert!(Instant::now() < patience, "only {made} attempts of {attempts}");
            made += self.pass().await;
        }
        assert_eq!(made, attempts);
    }

    /// Works until nothing is left.
    pub(crate) async fn work_off(&mut self, shop: &Shop) {
        let patience = Instant::now() + wait::DEADLINE;
        while shop.left() > 0 {
            assert!(Instant::now() < patience, "{} deliveries are left", shop.left());
            self.pass().await;
        }
    }
}

fn config(doors: &[Door], mailer: &Destination) -> Config {
    let retry = "retry = { max_attempts = 100, base = \"1ms\", cap = \"20ms\" }";
    let mut text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         [sources.stripe-live]\nprovider = \"stripe\"\nsecrets = [\"{SECRET}\"]\n\
         [destinations.mailer]\nurl = \"http://{}/\"\nallow_private = true\n{retry}\n\
         secret = \"whsec_ZG9vcnMtZG9vcnMtZG9vcnMtZG9vcnMtZG9vcnM=\"\n",
        mailer.address()
    );
    for door in doors {
        let route = door.route();
        text += &format!("[routes.{route}]\nsources = [\"stripe-live\"]\npull = true\n{retry}\n");
    }
    Config::parse("test.toml", &text, Environment::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// The schema a service has its tables in.
fn schema(url: &str) -> &'static str {
    if url.starts_with("sqlite://") { "main" } else { "public" }
}

async fn post_signed(addr: SocketAddr, body: Vec<u8>) -> Answer {
    let draft = Draft {
        method: "POST".into(),
        url: "https://oncebox.test/in/stripe-live".into(),
        headers: ::http::HeaderMap::new(),
        body,
    };
    let stripe = catalogue::find("stripe").unwrap();
    let signed = sign(stripe, &Secret::new(SECRET), draft, SystemClock.now()).unwrap();
    let headers: Vec<(&str, &str)> = signed
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    let mut connection = AsyncConnection::open(addr).await.unwrap();
    connection.request("POST", "/in/stripe-live", &headers, &signed.body).await.unwrap()
}
