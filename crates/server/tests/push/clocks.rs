//! Workers whose clocks are an hour off: the store's clock decides what is due and whose lease is
//! good, so they work like any other.

use std::sync::Arc;

use oncebox::clock::{Clock, ManualClock, SystemClock};
use oncebox::store::{self, Purpose, Store};
use oncebox_server::config::Config;
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};
use oncebox_server::state::Roles;
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::{http, wait};

use crate::bed::{Place, QUICK, config, event};

pub(crate) const INGEST: Roles = Roles { ingest: true, worker: false, console: false };
const WORKER: Roles = Roles { ingest: false, worker: true, console: false };

#[tokio::test(flavor = "multi_thread")]
async fn clocks_an_hour_off_change_nothing_on_sqlite() {
    for seconds in [-3600, 3600] {
        off_by(seconds, &Place::sqlite()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_an_hour_off_change_nothing_on_postgres() {
    for seconds in [-3600, 3600] {
        off_by(seconds, &Place::postgres().await).await;
    }
}

/// One event that is processed at once, and one that needs a retry.
async fn off_by(seconds: i64, place: &Place) {
    let destination = Destination::start();
    let route = format!("{QUICK}push = \"http://{}/\"\n", destination.address());
    let config = config(&destination, "", &route);
    let receiver = serve(&config, place, INGEST, Arc::new(SystemClock)).await;
    for id in ["evt_1", "evt_2"] {
        let draft = event(id);
        let headers: Vec<_> = draft.headers.iter().collect();
        let headers: Vec<_> =
            headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        let answer = http::post(receiver.public, "/in/stripe", &headers, &draft.body).unwrap();
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    receiver.stop().await;
    assert!(destination.requests().is_empty());

    destination.next(Behaviour::status(503));
    let clock = ManualClock::at(SystemClock.now());
    clock.advance_secs(seconds);
    let worker = serve(&config, place, WORKER, Arc::new(clock)).await;
    let url = place.url();
    let finished = || {
        oncebox_testkit::store::query(
            &url,
            "SELECT state, sum(attempts), sum(failures), sum(crashes) FROM finished GROUP BY state",
        )
    };
    tokio::task::block_in_place(|| {
        wait::until("both are processed", || finished() == "processed|3|1|0");
    });
    worker.stop().await;
}

pub(crate) async fn serve(
    config: &Config,
    place: &Place,
    roles: Roles,
    clock: Arc<dyn Clock>,
) -> Server {
    let store: Arc<dyn Store> = store::open(&place.url(), Purpose::Serve).await.unwrap();
    let options = StartOptions { roles, ..ingest_options(&config.server).into() };
    let listeners = Listeners::bind_for(config, roles).await.unwrap();
    Server::start(config.clone(), store, clock, options, listeners).await.unwrap()
}
