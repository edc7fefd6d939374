//! A server in the test's own process and a destination beside it.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use oncebox::clock::SystemClock;
use oncebox::delivery::State;
use oncebox::receipt::ReceiptId;
use oncebox::store::{
    self, AttemptRow, DeliveryFilter, DeliveryRow, Purpose, ReceiptFilter, Store,
};
use oncebox::worker::WorkerOptions;
use oncebox_server::config::{Config, Environment};
use oncebox_server::push::{Dial, Resolve};
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::http::{self, Answer};
use oncebox_testkit::{postgres, wait};
use oncebox_verify::{Draft, SampleEvent, Secret, catalogue, sample, sign};
use rustls::ClientConfig;

/// Signs for the source `stripe`.
pub(crate) const STRIPE: &str = "whsec_canary_stripe_secret";

/// Signs what the route `app` pushes.
pub(crate) const APP: &str = "whsec_Y2FuYXJ5LWZvci10aGUtYXBwcy1yb3V0ZQ==";

/// The name under which the destination is found, if the test's names say so.
pub(crate) const HOST: &str = "app.test";

pub(crate) struct Bed {
    pub(crate) server: Server,
    pub(crate) destination: Destination,
    pub(crate) names: Arc<Names>,
    _place: Place,
}

/// What goes away with the bed.
pub(crate) enum Place {
    Folder(tempfile::TempDir),
    Database(postgres::Database),
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) async fn postgres() -> Self {
        let database = tokio::task::spawn_blocking(oncebox_testkit::store::database);
        Self::Database(database.await.unwrap())
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Folder(folder) => format!("sqlite://{}/oncebox.db", folder.path().display()),
            Self::Database(database) => database.url().to_owned(),
        }
    }
}

/// Names as a test wants them. Everything is on this machine unless something else was said.
#[derive(Default)]
pub(crate) struct Names {
    script: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    /// The next look-up finds these.
    pub(crate) fn next(&self, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self.script.lock().unwrap().push_back(addresses);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let next = self.script.lock().unwrap().pop_front();
        Ok(next.unwrap_or_else(|| vec![Ipv4Addr::LOCALHOST.into()]))
    }
}

/// What most stories want of their route.
pub(crate) const QUICK: &str = "allow_private = true\n\
     retry = { max_attempts = 3, base = \"10ms\", cap = \"20ms\" }\n";

impl Bed {
    /// A server whose route `app` pushes to the destination, with further keys of the route.
    pub(crate) async fn new(route: &str) -> Self {
        Self::on(Place::sqlite(), "", route).await
    }

    /// As [`Bed::new`], believing certificates as told.
    pub(crate) async fn trusting(tls: Arc<ClientConfig>, route: &str) -> Self {
        Self::start(Place::sqlite(), "", route, Ok(tls)).await
    }

    /// As [`Bed::new`], in a store of one's own and with further keys of the source.
    pub(crate) async fn on(place: Place, source: &str, route: &str) -> Self {
        Self::start(place, source, route, Dial::system().tls).await
    }

    async fn start(
        place: Place,
        source: &str,
        route: &str,
        tls: Result<Arc<ClientConfig>, String>,
    ) -> Self {
        let destination = Destination::start();
        let config = config(&destination, source, route);
        let names = Arc::new(Names::default());
        let store = store::open(&place.url(), Purpose::Serve).await.unwrap();
        let dial = Dial { resolver: names.clone(), tls };
        // Retries of a few milliseconds are looked for as often.
        let poll = Duration::from_millis(5);
        let worker = WorkerOptions { poll, ..WorkerOptions::default() };
        let options = StartOptions { dial, worker, ..ingest_options(&config.server).into() };
        let listeners = Listeners::bind(&config).await.unwrap();
        let server = Server::start(config, store, Arc::new(SystemClock), options, listeners);
        Self { server: server.await.unwrap(), destination, names, _place: place }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.server.inbox.store
    }

    /// Posts an event and returns its receipt.
    pub(crate) async fn send(&self, id: &str) -> ReceiptId {
        self.send_draft(event(id)).await
    }

    /// Posts a signed request and returns its receipt.
    pub(crate) async fn send_draft(&self, draft: Draft) -> ReceiptId {
        let answer = self.post(draft).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        receipt(&answer)
    }

    /// Posts a signed request.
    pub(crate) async fn post(&self, draft: Draft) -> Answer {
        let public = self.server.public;
        let post = move || {
            let headers: Vec<_> = draft.headers.iter().collect();
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
                .collect();
            http::post(public, "/in/stripe", &headers, &draft.body).unwrap()
        };
        tokio::task::spawn_blocking(post).await.unwrap()
    }

    /// The receipts there are, oldest first.
    pub(crate) async fn only_receipts(&self) -> Vec<ReceiptId> {
        let filter = ReceiptFilter { limit: 100, ..ReceiptFilter::default() };
        let receipts = self.store().receipts(&filter).await.unwrap();
        receipts.iter().rev().map(|receipt| receipt.receipt).collect()
    }

    /// The one receipt there is.
    pub(crate) async fn only_receipt(&self) -> ReceiptId {
        let receipts = self.only_receipts().await;
        assert_eq!(receipts.len(), 1);
        receipts[0]
    }

    /// The delivery of a receipt.
    pub(crate) async fn delivery(&self, receipt: ReceiptId) -> DeliveryRow {
        let receipt = Some(receipt);
        let filter = DeliveryFilter { receipt, limit: 2, ..DeliveryFilter::default() };
        let rows = self.store().deliveries(&filter).await.unwrap();
        let [row] = <[DeliveryRow; 1]>::try_from(rows).expect("one delivery");
        row
    }

    /// Waits until the delivery of a receipt is in a state, and returns it.
    pub(crate) async fn until(&self, receipt: ReceiptId, state: State) -> DeliveryRow {
        self.until_it(receipt, &format!("{state}"), |row| row.state == state).await
    }

    /// Waits until something holds of the delivery of a receipt, and returns it.
    pub(crate) async fn until_it(
        &self,
        receipt: ReceiptId,
        what: &str,
        holds: impl Fn(&DeliveryRow) -> bool,
    ) -> DeliveryRow {
        let patience = std::time::Instant::now() + wait::DEADLINE;
        loop {
            let row = self.delivery(receipt).await;
            if holds(&row) {
                return row;
            }
            assert!(std::time::Instant::now() < patience, "waited in vain until {what}: {row:?}");
            tokio::task::yield_now().await;
        }
    }

    /// Every attempt of a receipt that has ended.
    pub(crate) async fn attempts(&self, receipt: ReceiptId) -> Vec<AttemptRow> {
        self.store().attempts(receipt).await.unwrap()
    }

    /// The value of a metric.
    pub(crate) async fn metric(&self, line: &str) -> Option<f64> {
        let admin = self.server.admin;
        let get = move || http::get(admin, "/metrics").unwrap();
        let answer = tokio::task::spawn_blocking(get).await.unwrap();
        let text = String::from_utf8(answer.body).unwrap();
        let found = text.lines().find_map(|found| found.strip_prefix(line));
        found.map(|value| value.trim().parse().unwrap())
    }
}

/// The configuration of a bed.
pub(crate) fn config(destination: &Destination, source: &str, route: &str) -> Config {
    let port = destination.address().port();
    let push = match route.contains("push = ") {
        true => String::new(),
        false => format!("push = \"http://{HOST}:{port}/hook?a=1\"\n"),
    };
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         [sources.stripe]\nprovider = \"stripe\"\nsecrets = [\"{STRIPE}\"]\n{source}\
         [routes.app]\nsources = [\"stripe\"]\nsecret = \"{APP}\"\n{push}{route}"
    );
    Config::parse("test.toml", &text, Environment::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// An event of Stripe's, signed now. It says the same whenever it is sent.
pub(crate) fn event(id: &str) -> Draft {
    let stripe = catalogue::find("stripe").unwrap();
    let at = jiff::Timestamp::from_second(1_790_000_000).unwrap();
    let event = SampleEvent { id, event_type: "invoice.paid", at, object: Some("in_1") };
    signed(sample(stripe, &event))
}

/// The draft, signed as Stripe would now.
pub(crate) fn signed(draft: Draft) -> Draft {
    let stripe = catalogue::find("stripe").unwrap();
    sign(stripe, &Secret::new(STRIPE), draft, now()).unwrap()
}

pub(crate) fn now() -> jiff::Timestamp {
    oncebox::clock::Clock::now(&SystemClock)
}

/// The receipt an answer names.
pub(crate) fn receipt(answer: &Answer) -> ReceiptId {
    json(answer)["receipt"].as_str().expect("a receipt").parse().unwrap()
}

pub(crate) fn json(answer: &Answer) -> serde_json::Value {
    serde_json::from_slice(&answer.body).unwrap()
}
