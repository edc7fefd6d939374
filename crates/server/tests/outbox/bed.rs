//! A server in the test's own process, a destination beside it, and a handler that writes to it.

use std::sync::Arc;
use std::time::Duration;

use oncebox::clock::SystemClock;
use oncebox::delivery::State;
use oncebox::effect::{Message, Sent, Under};
use oncebox::receipt::ReceiptId;
use oncebox::replay::{Driver, How, Phase, Replay, ReplayFilter};
use oncebox::route::RouteRules;
use oncebox::store::{Claim, DeliveryFilter, DeliveryRow, Purpose, Store, Wanted, open};
use oncebox::worker::WorkerOptions;
use oncebox_server::config::{Config, Environment};
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::http::{self, Answer};
use oncebox_testkit::store::{act, message, pass};
use oncebox_testkit::{postgres, wait};
use oncebox_verify::{SampleEvent, Secret, catalogue, sample, sign};
use tokio::sync::watch;

/// Signs for the source `stripe`.
const STRIPE: &str = "whsec_canary_stripe_secret";

/// Signs what goes to the destination `mailer`.
pub(crate) const MAILER: &str = "whsec_Y2FuYXJ5LWZvci10aGUtbWFpbGVyLXNlbmQ=";

/// What most stories want of their destination.
pub(crate) const QUICK: &str = "retry = { max_attempts = 8, base = \"10ms\", cap = \"20ms\" }\n";

/// Tells each story on each store.
macro_rules! on_each_store {
    ($($story:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story($crate::bed::Place::sqlite()).await;
                }
            )*
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story($crate::bed::Place::postgres().await).await;
                }
            )*
        }
    };
}

pub(crate) use on_each_store;

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

pub(crate) struct Bed {
    pub(crate) server: Server,
    /// Where `mailer` is.
    pub(crate) destination: Destination,
    url: String,
    _place: Place,
}

impl Bed {
    /// A server with the destination `mailer`, which has further keys. Handlers are workers that
    /// pull from the route `app`.
    pub(crate) async fn new(place: Place, mailer: &str) -> Self {
        let destination = Destination::start();
        let config = config(&destinations(&destination, mailer));
        let url = place.url();
        let store = open(&url, Purpose::Serve).await.unwrap();
        // Retries of a few milliseconds are looked for as often.
        let poll = Duration::from_millis(5);
        let worker = WorkerOptions { poll, ..WorkerOptions::default() };
        let options = StartOptions { worker, ..ingest_options(&config.server).into() };
        let listeners = Listeners::bind(&config).await.unwrap();
        let server = Server::start(config, store, Arc::new(SystemClock), options, listeners);
        Self { server: server.await.unwrap(), destination, url, _place: place }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.server.inbox.store
    }

    /// Another configuration of destinations.
    pub(crate) async fn reload(&self, destinations: &str) {
        self.server.reload(config(destinations)).await.unwrap();
    }

    /// Lets time pass in the store.
    pub(crate) async fn pass(&self, seconds: u32) {
        let url = self.url.clone();
        tokio::task::spawn_blocking(move || pass(&url, seconds)).await.unwrap();
    }

    /// An event under a lease: what a handler works on.
    pub(crate) async fn handler(&self, event_id: &str) -> Under {
        let answer = self.post(event_id).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let route = self.server.inbox.live().routes.find("app").unwrap().number;
        let wanted = vec![Wanted::new(route, 1, RouteRules::default())];
        let lease = Duration::from_secs(3600);
        let claim = Claim { wanted, lease, worker: "handler".into() };
        let claimed = self.store().claim(&claim).await.unwrap().claimed.remove(0);
        assert_eq!(claimed.event_id, event_id);
        Under { delivery: claimed.delivery, lease: claimed.lease }
    }

    async fn post(&self, event_id: &str) -> Answer {
        let stripe = catalogue::find("stripe").unwrap();
        let at = jiff::Timestamp::from_second(1_790_000_000).unwrap();
        let event = SampleEvent { id: event_id, event_type: "invoice.paid", at, object: None };
        let now = oncebox::clock::Clock::now(&SystemClock);
        let draft = sign(stripe, &Secret::new(STRIPE), sample(stripe, &event), now).unwrap();
        let public = self.server.public;
        let post = move || {
            let headers = draft.headers.iter();
            let headers: Vec<_> =
                headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            http::post(public, "/in/stripe", &headers, &draft.body).unwrap()
        };
        tokio::task::spawn_blocking(post).await.unwrap()
    }

    /// Writes a message.
    pub(crate) async fn send(&self, under: Under, message: &Message) -> Sent {
        self.store().send(under, message).await.unwrap()
    }

    /// Writes a message that must be new.
    pub(crate) async fn write(&self, under: Under, message: &Message) -> ReceiptId {
        match self.send(under, message).await {
            Sent::New(receipt) => receipt,
            other => panic!("{other:?}"),
        }
    }

    /// The delivery of a message.
    pub(crate) async fn delivery(&self, message: ReceiptId) -> DeliveryRow {
        let receipt = Some(message);
        let filter = DeliveryFilter { receipt, limit: 2, ..DeliveryFilter::default() };
        let rows = self.store().deliveries(&filter).await.unwrap();
        let [row] = <[DeliveryRow; 1]>::try_from(rows).expect("one delivery");
        row
    }

    /// Waits until the delivery of a message is in a state, and returns it.
    pub(crate) async fn until(&self, message: ReceiptId, state: State) -> DeliveryRow {
        let patience = std::time::Instant::now() + wait::DEADLINE;
        loop {
            let row = self.delivery(message).await;
            if row.state == state {
                return row;
            }
            assert!(std::time::Instant::now() < patience, "waited in vain for {state}: {row:?}");
            tokio::task::yield_now().await;
        }
    }

    /// Replays a message, to the end of the job.
    pub(crate) async fn replay(&self, message: ReceiptId) {
        let filter = ReplayFilter { receipts: vec![message], ..ReplayFilter::default() };
        let why = act("it will be taken now");
        let job = Replay::new(filter, How::default(), 1, &why);
        self.store().create_replay(&job, &why).await.unwrap();
        let (_go_on, stop) = watch::channel(false);
        let patience = std::time::Instant::now() + wait::DEADLINE;
        // The server drives replays, too, if it sees them first.
        while self.store().replay(job.id).await.unwrap().unwrap().phase == Phase::Running {
            assert!(std::time::Instant::now() < patience, "the replay does not end");
            if let Some(driver) = Driver::take(self.store(), Some(job.id)).await.unwrap() {
                driver.run(|_| {}, stop.clone()).await.unwrap();
            }
        }
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

    /// The keys of everything the destination got, in the order it came.
    pub(crate) fn keys(&self) -> Vec<String> {
        let requests = self.destination.requests();
        let key = |request: &oncebox_testkit::destination::Received| {
            request.header("idempotency-key").expect("it has a key").to_owned()
        };
        requests.iter().map(key).collect()
    }
}

/// A message to `mailer` of no group.
pub(crate) fn mail(key: &str) -> Message {
    message("mailer", key, &format!("{{\"mail\":\"{key}\"}}"))
}

/// The destination `mailer`, with further keys.
pub(crate) fn destinations(destination: &Destination, more: &str) -> String {
    named("mailer", destination, more)
}

/// A destination of any name, with further keys.
pub(crate) fn named(name: &str, destination: &Destination, more: &str) -> String {
    let to = destination.address();
    format!(
        "[destinations.{name}]\nurl = \"http://{to}/messages?a=1\"\nsecret = \"{MAILER}\"\n\
         allow_private = true\n{more}"
    )
}

fn config(destinations: &str) -> Config {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         [sources.stripe]\nprovider = \"stripe\"\nsecrets = [\"{STRIPE}\"]\n\
         [routes.app]\nsources = [\"stripe\"]\npull = true\n{destinations}"
    );
    Config::parse("test.toml", &text, Environment::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}
