//! Routes of a running server: reloads, roles, stopping, and what metrics say.

use std::sync::Arc;
use std::time::Duration;

use oncebox::clock::SystemClock;
use oncebox::delivery::State;
use oncebox::store::{self, Purpose};
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};
use oncebox_server::state::Roles;
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::http;

use crate::bed::{Bed, QUICK, config, event};

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_changes_where_events_go() {
    let bed = Bed::new(QUICK).await;
    let first = bed.send("evt_1").await;
    bed.until(first, State::Processed).await;
    let other = Destination::start();
    bed.server.reload(config(&other, "", QUICK)).await.unwrap();
    let second = bed.send("evt_2").await;
    bed.until(second, State::Processed).await;
    assert_eq!((bed.destination.requests().len(), other.requests().len()), (1, 1));
}

/// Its deliveries are shown, not lost, and go on when it is there again.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_is_removed_keeps_what_it_owes() {
    let bed = Bed::new(QUICK).await;
    bed.destination.next(Behaviour::answer(503, &[("Retry-After", "1")]));
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Retrying).await;
    let with_route = bed.server.config();
    let mut without = with_route.clone();
    without.routes.clear();
    bed.server.reload(without).await.unwrap();
    assert_eq!(bed.delivery(receipt).await.state, State::Retrying);
    let held = "oncebox_deliveries{route=\"app\",state=\"held\"}";
    assert_eq!(bed.metric(held).await, Some(1.0));
    bed.server.reload(with_route).await.unwrap();
    bed.until(receipt, State::Processed).await;
}

/// What was said last of the old name would look like a backlog for ever.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_forget_the_old_name_of_a_route() {
    let bed = Bed::new(QUICK).await;
    bed.destination.next(Behaviour::status(422));
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Dead).await;
    let mut renamed = bed.server.config();
    let mut route = renamed.routes.remove("app").unwrap();
    route.sending.renamed_from = Some("app".to_owned());
    renamed.routes.insert("shop".to_owned(), route);
    bed.server.reload(renamed).await.unwrap();

    let dead = |route: &str| format!("oncebox_deliveries{{route=\"{route}\",state=\"dead\"}}");
    assert_eq!(bed.metric(&dead("shop")).await, Some(1.0));
    assert_eq!(bed.metric(&dead("app")).await, None);
    assert_eq!(bed.metric("oncebox_breaker_open{route=\"app\"}").await, None);
    assert_eq!(bed.metric("oncebox_breaker_open{route=\"shop\"}").await, Some(0.0));
}

/// What was being delivered when the server stops is finished or given back, never stuck.
#[tokio::test(flavor = "multi_thread")]
async fn stopping_leaves_no_lease_behind() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/oncebox.db", folder.path().display());
    let destination = Destination::start();
    destination.next(Behaviour::Hang);
    let mut config = config(&destination, "", &QUICK.replace("allow", "concurrency = 1\nallow"));
    config.server.drain_timeout = oncebox_server::config::Period(Duration::from_millis(100));
    let port = destination.address().port();
    config.routes.get_mut("app").unwrap().push = Some(format!("http://127.0.0.1:{port}/"));
    let store = store::open(&url, Purpose::Serve).await.unwrap();
    let options = ingest_options(&config.server);
    let listeners = Listeners::bind(&config).await.unwrap();
    let clock = Arc::new(SystemClock);
    let server = Server::start(config, store, clock, options, listeners).await.unwrap();
    for id in ["evt_1", "evt_2", "evt_3"] {
        let draft = event(id);
        let headers: Vec<_> = draft.headers.iter().collect();
        let headers: Vec<_> =
            headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        let answer = http::post(server.public, "/in/stripe", &headers, &draft.body).unwrap();
        assert_eq!(answer.status, 202);
    }
    destination.wait_for(1);
    server.stop().await;

    let store = store::open(&url, Purpose::Operate).await.unwrap();
    let filter = store::DeliveryFilter { limit: 9, ..Default::default() };
    let rows = store.deliveries(&filter).await.unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.state != State::Processing), "{rows:#?}");
    let tried: u32 = rows.iter().map(|row| row.counts.attempts).sum();
    assert_eq!(tried, 1, "only what was on the wire has used up an attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_does_what_its_roles_say() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/oncebox.db", folder.path().display());
    let destination = Destination::start();
    let config = config(&destination, "", QUICK);
    let roles = Roles { ingest: false, worker: false, console: false };
    let store = store::open(&url, Purpose::Serve).await.unwrap();
    let listeners = Listeners::bind_for(&config, roles).await.unwrap();
    assert!(listeners.public.is_none(), "nothing is received");
    let options = StartOptions { roles, ..ingest_options(&config.server).into() };
    let server = Server::start(config, store, Arc::new(SystemClock), options, listeners);
    let server = server.await.unwrap();
    assert!(server.inbox.worker.is_none(), "nothing is delivered");
    for (path, status) in [("/livez", 200), ("/readyz", 200), ("/metrics", 200)] {
        assert_eq!(http::get(server.admin, path).unwrap().status, status, "{path}");
    }
    let claim = http::post(server.admin, "/api/v1/routes/app/claim", &[], b"").unwrap();
    assert_eq!(claim.status, 404, "no API");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_has_a_count_and_an_age() {
    let bed = Bed::new(QUICK).await;
    bed.destination.next(Behaviour::answer(503, &[("Retry-After", "3600")]));
    bed.destination.next(Behaviour::status(422));
    for id in ["evt_1", "evt_2", "evt_3"] {
        bed.send(id).await;
        bed.destination.wait_for(id[4..].parse().unwrap());
    }
    let last = bed.only_receipts().await;
    for (receipt, state) in last.into_iter().zip([State::Retrying, State::Dead, State::Processed]) {
        bed.until(receipt, state).await;
    }
    for state in ["retrying", "dead", "processed"] {
        let count = format!("oncebox_deliveries{{route=\"app\",state=\"{state}\"}}");
        assert_eq!(bed.metric(&count).await, Some(1.0), "{state}");
        let age = format!("oncebox_oldest_seconds{{route=\"app\",state=\"{state}\"}}");
        let age = bed.metric(&age).await.unwrap();
        // What was processed is as old as it is kept; no index is kept for its age.
        assert_eq!(age > 0.0, state != "processed", "{state}: {age}");
    }
    let held = "oncebox_deliveries{route=\"app\",state=\"held\"}";
    assert_eq!(bed.metric(held).await, Some(0.0));
    assert_eq!(bed.metric("oncebox_breaker_open{route=\"app\"}").await, Some(0.0));
}
