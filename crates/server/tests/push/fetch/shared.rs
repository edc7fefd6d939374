//! One answer for several deliveries, as far as it is new enough; and the rate.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::Uri;
use oncebox::clock::SystemClock;
use oncebox::delivery::State;
use oncebox_server::server::Server;
use oncebox_server::state::Roles;
use oncebox_testkit::destination::{Destination, Received};
use oncebox_testkit::{http, store, wait};
use tokio::sync::Semaphore;

use super::{event_about, fetch, fetching};
use crate::bed::{Bed, Place, QUICK, config, event};
use crate::clocks::{INGEST, serve};

/// An API that answers only as often as it is let, with the number of the answer.
#[derive(Clone)]
struct Gated {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
}

impl Gated {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, gate) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let api = Self { address, asked, gate };
        let serving = api.clone();
        let router = Router::new().fallback(move |uri: Uri| serving.clone().answer(uri));
        tokio::spawn(async move { axum::serve(listener, router).await });
        api
    }

    async fn answer(self, uri: Uri) -> String {
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(uri.to_string());
            asked.len()
        };
        self.gate.acquire().await.unwrap().forget();
        number.to_string()
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The keys of a route that fetches from it.
    fn route(&self, destination: &Destination, more: &str) -> String {
        let url = format!("http://{}/{{object}}", self.address);
        format!("{QUICK}push = \"http://{}/\"\n{}", destination.address(), fetch(&url, more))
    }
}

fn until(what: &str, holds: impl FnMut() -> bool) {
    tokio::task::block_in_place(|| wait::until(what, holds));
}

fn metric(server: &Server, line: &str) -> f64 {
    let answer = http::get(server.admin, "/metrics").unwrap();
    let text = String::from_utf8(answer.body).unwrap();
    let found = text.lines().find_map(|found| found.strip_prefix(line));
    found.unwrap_or_else(|| panic!("no {line}")).trim().parse().unwrap()
}

fn fetches(server: &Server, outcome: &str) -> f64 {
    metric(server, &format!("oncebox_fetches_total{{route=\"app\",outcome=\"{outcome}\"}}"))
}

fn post(server: &Server, id: &str) {
    let draft = event(id);
    let headers: Vec<_> = draft.headers.iter().collect();
    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
    let answer = http::post(server.public, "/in/stripe", &headers, &draft.body).unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
}

/// Has events received that nobody delivers yet, and lets a minute pass.
async fn received_a_minute_ago(
    config: &oncebox_server::config::Config,
    place: &Place,
    events: usize,
) {
    let receiver = serve(config, place, INGEST, Arc::new(SystemClock)).await;
    for number in 0..events {
        post(&receiver, &format!("evt_{number}"));
    }
    receiver.stop().await;
    let earlier = match place.url().starts_with("sqlite://") {
        true => "received_at - 60000",
        false => "received_at - interval '1 minute'",
    };
    store::query(&place.url(), &format!("UPDATE receipts SET received_at = {earlier}"));
}

/// The number of the answer that a push carried.
fn current(push: &Received) -> String {
    let body = String::from_utf8(push.body.clone()).unwrap();
    body.rsplit_once(":").unwrap().1.trim_end_matches('}').to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_about_one_object_share_a_request_on_sqlite() {
    share(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_about_one_object_share_a_request_on_postgres() {
    share(Place::postgres().await).await;
}

async fn share(place: Place) {
    let (api, destination) = (Gated::start().await, Destination::start());
    let config = config(&destination, "", &api.route(&destination, ", cache = \"0s\""));
    received_a_minute_ago(&config, &place, 9).await;
    let server = serve(&config, &place, Roles::ALL, Arc::new(SystemClock)).await;
    until("all have asked", || fetches(&server, "coalesced") == 8.0);
    until("the API was asked", || api.asked() == 1);
    api.gate.add_permits(99);
    let pushes = tokio::task::block_in_place(|| destination.wait_for(9));
    assert!(pushes.iter().all(|push| current(push) == "1"));
    assert_eq!((api.asked(), fetches(&server, "found")), (1, 1.0));
    server.stop().await;
}

/// Events that came when the first request was under way tell of changes that its answer need not
/// show. They wait for the next one, together.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_newer_than_a_request_wait_for_the_next() {
    let (api, destination) = (Gated::start().await, Destination::start());
    let config = config(&destination, "", &api.route(&destination, ""));
    let place = Place::sqlite();
    let server = serve(&config, &place, Roles::ALL, Arc::new(SystemClock)).await;
    post(&server, "evt_0");
    until("the API was asked", || api.asked() == 1);
    for number in 1..6 {
        post(&server, &format!("evt_{number}"));
    }
    until("the others wait for the next", || fetches(&server, "coalesced") == 4.0);
    assert_eq!(api.asked(), 1, "one at a time");
    api.gate.add_permits(99);
    let pushes = tokio::task::block_in_place(|| destination.wait_for(6));
    for push in &pushes {
        let first = push.header("oncebox-event-id") == Some("evt_0");
        assert_eq!(current(push), if first { "1" } else { "2" });
    }
    assert_eq!(api.asked(), 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_serves_what_was_received_before_on_sqlite() {
    cached(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_serves_what_was_received_before_on_postgres() {
    cached(Place::postgres().await).await;
}

/// A backlog, one after the other, and then an event that came after what is in the cache.
async fn cached(place: Place) {
    let (api, destination) = (Gated::start().await, Destination::start());
    api.gate.add_permits(99);
    let route = api.route(&destination, ", cache = \"1m\"");
    let config = config(&destination, "", &format!("concurrency = 1\n{route}"));
    received_a_minute_ago(&config, &place, 3).await;
    let server = serve(&config, &place, Roles::ALL, Arc::new(SystemClock)).await;
    tokio::task::block_in_place(|| destination.wait_for(3));
    assert_eq!((api.asked(), fetches(&server, "cached")), (1, 2.0));

    post(&server, "evt_3");
    let pushes = tokio::task::block_in_place(|| destination.wait_for(4));
    let answers: Vec<_> = pushes.iter().map(current).collect();
    assert_eq!(answers, ["1", "1", "1", "2"], "the cache is older than the last event");
    assert_eq!((api.asked(), fetches(&server, "cached")), (2, 2.0));
    server.stop().await;
}

/// At one a second, four at once cannot all have a turn within a fifth of one.
#[tokio::test(flavor = "multi_thread")]
async fn fetches_take_turns_and_wait_for_them_only_so_long() {
    let api = super::api("{}");
    let route = fetching(&api, ", rate = 1").replace("max_attempts = 3", "max_attempts = 200");
    let bed = Bed::new(&format!("timeout = \"200ms\"\n{route}")).await;
    let mut receipts = Vec::new();
    for number in 0..4 {
        let draft =
            event_about(&format!("evt_{number}"), "invoice.paid", Some(&format!("in_{number}")));
        receipts.push(bed.send_draft(draft).await);
    }
    let mut details = Vec::new();
    for receipt in receipts {
        bed.until(receipt, State::Processed).await;
        details.extend(bed.attempts(receipt).await.into_iter().filter_map(|row| row.detail));
    }
    let told = "fetch: no turn within 200ms at 1 per second; raise `rate`";
    assert!(details.iter().any(|detail| detail == told), "{details:?}");
    assert!(api.requests().len() >= 4);
    let reason = "oncebox_retries_total{route=\"app\",reason=\"fetch_rate\"}";
    assert!(bed.metric(reason).await.unwrap() >= 1.0);
}
