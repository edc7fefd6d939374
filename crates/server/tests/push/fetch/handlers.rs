//! Handlers in Rust on a route that fetches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use oncebox::clock::SystemClock;
use oncebox::delivery::{Claimed, Current, Next, Outcome, Payload, State};
use oncebox::handler::{
    Decision, Event, Failure, Handlers, PostgresCx, PostgresHandler, SqliteCx, apply,
};
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::route::RouteRules;
use oncebox::store::{DeliveryFilter, Store};
use oncebox::worker::{Consumer, Observer, Report, Told, WorkRoute, Worker, WorkerOptions};
use oncebox_server::config::{Config, Environment};
use oncebox_server::fetch::{Fetcher, Fetching};
use oncebox_server::metrics::Metrics;
use oncebox_server::push::Dial;
use oncebox_server::server::{Listeners, Server, StartError, StartOptions, ingest_options};
use oncebox_server::state::Means;
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, Opened, ending};
use oncebox_testkit::{http, wait};
use serde::Deserialize;
use tokio::sync::Notify;

use super::{api, event_about, fetch};
use crate::bed::STRIPE;

for_each_store!(
    a_handler_reads_the_object_of_now,
    an_end_that_seems_lost_is_waited_for,
    without_a_handler_nobody_would_be_handed_anything,
);

/// As much of the object as the handlers need.
#[derive(Deserialize)]
struct Invoice {
    id: String,
    status: String,
}

/// What a handler was handed, said in its decision.
fn decision(current: Option<&Current>, read: Option<Invoice>) -> Decision {
    Decision::processed(match (current, read) {
        (Some(Current::Found { content_type, .. }), Some(invoice)) => {
            format!("{} is {}, by {content_type}", invoice.id, invoice.status)
        }
        (Some(Current::Missing), None) => "it is gone".into(),
        (None, None) => "nothing was fetched".into(),
        _ => "what was read is not what is there".into(),
    })
}

struct Looks;

impl PostgresHandler for Looks {
    type Event = ();

    async fn handle(
        &self,
        event: &Event<()>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        assert_eq!(event.current(), cx.current());
        let by_event = decision(event.current(), event.current_as()?);
        assert_eq!(decision(cx.current(), cx.current_as()?), by_event);
        Ok(by_event)
    }
}

/// The handlers of a service, on either store.
fn looks(opened: &Opened) -> Arc<dyn Consumer> {
    match opened {
        Opened::Sqlite(store) => {
            let looks = apply(|event: &Event<()>, cx: &SqliteCx<'_>| {
                assert_eq!(event.current(), cx.current());
                let by_event = decision(event.current(), event.current_as()?);
                assert_eq!(decision(cx.current(), cx.current_as()?), by_event);
                Ok(by_event)
            });
            Arc::new(Handlers::new(store.clone()).on("*", "*", looks))
        }
        Opened::Postgres(store) => Arc::new(Handlers::new(store.clone()).on("*", "*", Looks)),
        Opened::Nothing => panic!("there is no store"),
    }
}

/// A route that fetches invoices for handlers.
fn config(api: &Destination) -> Config {
    let url = format!("http://{}/{{object}}", api.address());
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         [sources.stripe]\nprovider = \"stripe\"\nsecrets = [\"{STRIPE}\"]\n\
         [routes.app]\nsources = [\"stripe\"]\npull = true\n{}",
        fetch(&url, ", types = [\"invoice.*\"], cache = \"0s\"")
    );
    Config::parse("test.toml", &text, Environment::default()).unwrap()
}

async fn start(bed: &Bed, config: Config, handlers: Option<Arc<dyn Consumer>>) -> Started {
    let mut options = StartOptions::from(ingest_options(&config.server));
    options.handlers.extend(handlers.map(|handlers| ("app".to_owned(), handlers)));
    let listeners = Listeners::bind(&config).await.unwrap();
    Server::start(config, bed.store.clone(), Arc::new(SystemClock), options, listeners).await
}

type Started = Result<Server, StartError>;

/// What the handler says it did with an event.
async fn summary(bed: &Bed, server: &Server, id: &str, event_type: &str) -> String {
    let draft = event_about(id, event_type, Some("in_1"));
    let headers: Vec<_> = draft.headers.iter().collect();
    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
    let public = server.public;
    let post = || http::post(public, "/in/stripe", &headers, &draft.body).unwrap();
    let answer = tokio::task::block_in_place(post);
    assert_eq!(answer.status, 202);
    let receipt: ReceiptId = answer.json()["receipt"].as_str().unwrap().parse().unwrap();
    tokio::task::block_in_place(|| wait::until("it is handled", || bed.rows("deliveries") == 0));
    let filter = DeliveryFilter { receipt: Some(receipt), limit: 1, ..DeliveryFilter::default() };
    let row = bed.store.deliveries(&filter).await.unwrap().remove(0);
    assert_eq!((row.state, row.counts.attempts), (State::Processed, 1), "{:?}", row.detail);
    row.summary.expect("a summary")
}

async fn a_handler_reads_the_object_of_now(bed: Bed) {
    let api = api("{\"id\": \"in_1\", \"status\": \"void\", \"lines\": []}");
    let server = start(&bed, config(&api), Some(looks(&bed.opened))).await.unwrap();
    let found = summary(&bed, &server, "evt_1", "invoice.paid").await;
    assert_eq!(found, "in_1 is void, by application/json; charset=utf-8");
    let other = summary(&bed, &server, "evt_2", "customer.created").await;
    assert_eq!(other, "nothing was fetched");
    api.always(Behaviour::status(404));
    assert_eq!(summary(&bed, &server, "evt_3", "invoice.paid").await, "it is gone");
    assert_eq!(api.requests().len(), 2);
    server.stop().await;
}

async fn without_a_handler_nobody_would_be_handed_anything(bed: Bed) {
    let api = api("{}");
    let refused = start(&bed, config(&api), None).await.err().unwrap();
    let StartError::Config(error) = refused else { panic!("{refused}") };
    assert!(error.to_string().contains("workers elsewhere pull from it"), "{error}");
}

/// Ends a delivery itself, as handlers do, and takes its time to say so.
struct Ends {
    store: Arc<dyn Store>,
    is_ending: AtomicBool,
    ended: Notify,
    go_on: Notify,
}

#[async_trait]
impl Consumer for Ends {
    async fn deliver(&self, claimed: &Claimed, _: Payload) -> Report {
        self.is_ending.store(true, Ordering::SeqCst);
        let ending = ending(claimed, Next::Processed);
        assert!(self.store.finish(vec![ending]).await.unwrap()[0].is_good());
        self.ended.notify_one();
        self.go_on.notified().await;
        Report { told: Told::Ended(Next::Processed), ..Report::of(Outcome::Processed) }
    }

    fn is_ending(&self, _: &Claimed) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }
}

#[derive(Default)]
struct Notes(Mutex<Vec<&'static str>>);

impl Observer for Notes {
    fn attempted(&self, _: &str, _: &Claimed, next: Next, _: &Report, _: std::time::Duration) {
        self.0.lock().unwrap().push(next.as_str());
    }

    fn lease_lost(&self, _: &str, _: &Claimed) {
        self.0.lock().unwrap().push("lease lost");
    }
}

/// The consumer behind a fetch, as the route of a server has it.
fn behind_a_fetch(bed: &Bed, api: &Destination, inner: Arc<dyn Consumer>) -> Arc<dyn Consumer> {
    let means = Means {
        store: bed.store.clone(),
        clock: Arc::new(SystemClock),
        metrics: Arc::new(Metrics::new()),
        dial: Dial::system(),
        handlers: HashMap::new(),
    };
    let config = config(api);
    let fetcher = Fetcher::new("app", &config.routes["app"], ::http::HeaderMap::new(), &means);
    Arc::new(Fetching::new(inner, fetcher.expect("the route fetches")))
}

/// The heartbeat finds the lease gone, since the consumer behind the fetch has just ended it.
async fn an_end_that_seems_lost_is_waited_for(bed: Bed) {
    let api = api("{}");
    let ends = Arc::new(Ends {
        store: bed.store.clone(),
        is_ending: AtomicBool::new(false),
        ended: Notify::new(),
        go_on: Notify::new(),
    });
    let consumer = behind_a_fetch(&bed, &api, ends.clone());
    let route = bed.route("app", RouteRules::default()).await;
    let work = WorkRoute {
        number: route.no,
        name: "app".into(),
        rules: route.rules,
        concurrency: 1,
        rate: None,
        lease: None,
        consumer,
    };
    let notes = Arc::new(Notes::default());
    let options =
        WorkerOptions { lease: LEASE, observer: notes.clone(), ..WorkerOptions::default() };
    let worker = Worker::by_hand(bed.store.clone(), vec![work], options);
    bed.send(Arrival { object: Some("in_1".into()), ..bed.event("e1", &[route]) }).await;
    worker.claim_once().await.unwrap();
    ends.ended.notified().await;
    assert_eq!(api.requests().len(), 1);

    assert_eq!(worker.beat().await.unwrap(), 1);
    ends.go_on.notify_one();
    worker.idle().await;
    assert_eq!(*notes.0.lock().unwrap(), ["processed"]);
}
