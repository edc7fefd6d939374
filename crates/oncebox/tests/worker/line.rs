//! The way of a delivery: claimed, delivered, finished.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oncebox::delivery::{Claimed, Counts, Outcome, Payload, State};
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox::worker::{Consumer, Report, WorkRoute, Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, time};

use crate::bed::{Destination, Notes, by_hand, options, work, work_off};

for_each_store!(
    what_is_due_is_delivered_and_finished,
    what_becomes_due_wakes_the_worker,
    a_retry_is_made_when_it_is_due,
    answers_lead_where_they_say,
    a_failing_delivery_is_retried_until_it_is_dead,
    a_panic_is_a_failed_attempt,
    a_backlog_is_drained_within_the_concurrency,
    an_ordered_route_is_worked_off_in_order,
    one_event_goes_through_each_of_its_routes,
    clocks_of_receivers_do_not_matter,
);

async fn what_is_due_is_delivered_and_finished(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let (destination, notes) = (Destination::new(), Notes::new());
    let options = WorkerOptions { observer: notes.clone(), ..options() };
    let worker =
        Worker::by_hand(bed.store.clone(), vec![work(route, "billing", &destination)], options);
    assert_eq!(worker.run_once().await.unwrap(), 0);
    for n in 1..=3 {
        bed.due(&format!("e{n}"), &[route]).await;
    }
    assert_eq!(worker.run_once().await.unwrap(), 3);
    assert_eq!(bed.states(&route).await, ["e1 processed", "e2 processed", "e3 processed"]);
    let lines = ["billing e1 processed", "billing e2 processed", "billing e3 processed"];
    assert_eq!(notes.lines(), lines);
    for (claimed, payload) in destination.seen() {
        let body = format!(r#"{{"id":"{}"}}"#, claimed.event_id);
        assert_eq!(payload.body, body.as_bytes());
        assert_eq!(payload.receipt, claimed.delivery.receipt);
        assert_eq!(claimed.counts, Counts { attempts: 1, ..Counts::default() });
    }
    assert_eq!(worker.run_once().await.unwrap(), 0);
}

/// Nobody polls: the record is what wakes.
async fn what_becomes_due_wakes_the_worker(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options());
    for n in 1..=3 {
        bed.due(&format!("e{n}"), &[route]).await;
        destination.answered(n).await;
    }
    worker.idle().await;
    worker.stop(Duration::ZERO).await;
    assert_eq!(bed.states(&route).await, ["e1 processed", "e2 processed", "e3 processed"]);
}

/// Nobody polls here either: retries that were found by polling would come back in step.
async fn a_retry_is_made_when_it_is_due(bed: Bed) {
    let base = Duration::from_millis(50);
    let route = bed.route("billing", RouteRules { base, ..RouteRules::default() }).await;
    let destination = Destination::new();
    destination.answer([Report::failed("not yet")]);
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options());
    bed.due("e1", &[route]).await;
    destination.answered(2).await;
    worker.idle().await;
    worker.stop(Duration::ZERO).await;
    assert_eq!(bed.states(&route).await, ["e1 processed"]);
}

async fn answers_lead_where_they_say(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let routes = vec![WorkRoute { concurrency: 1, ..work(route, "billing", &destination) }];
    let worker = by_hand(&bed.store, routes);
    let hour = Duration::from_secs(3600);
    destination.answer([
        Report { summary: Some("paid".into()), ..Report::of(Outcome::Processed) },
        Report::of(Outcome::Stale),
        Report { status: Some(503), ..Report::of(Outcome::Retry { after: Some(hour) }) },
        Report { detail: Some("no such".into()), ..Report::of(Outcome::Dead) },
        Report::of(Outcome::Snooze { after: hour }),
    ]);
    let mut deliveries = Vec::new();
    for n in 1..=5 {
        deliveries.push(route.of(bed.due(&format!("e{n}"), &[route]).await));
    }
    assert_eq!(work_off(&worker).await.iter().sum::<usize>(), 5);
    let expected = ["e1 processed", "e2 skipped:stale", "e3 retrying", "e4 dead", "e5 retrying"];
    assert_eq!(bed.states(&route).await, expected);
    assert_eq!(bed.delivery(deliveries[0]).await.summary.as_deref(), Some("paid"));
    assert_eq!(bed.delivery(deliveries[3]).await.detail.as_deref(), Some("no such"));
    let counts = |failures, snoozes| Counts { attempts: 1, failures, snoozes, ..Counts::default() };
    let retried = bed.delivery(deliveries[2]).await.counts;
    assert_eq!(Counts { tried: Duration::ZERO, ..retried }, counts(1, 0));
    assert_eq!(bed.delivery(deliveries[4]).await.counts, counts(0, 1));
}

async fn a_failing_delivery_is_retried_until_it_is_dead(bed: Bed) {
    let rules = RouteRules { max_attempts: 3, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let destination = Destination::new();
    destination.answer((0..3).map(|n| Report::failed(format!("failure {n}"))));
    let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    let receipt = bed.due("e1", &[route]).await;
    for attempt in 1..=3 {
        bed.pass(3600);
        assert_eq!(worker.run_once().await.unwrap(), 1);
        destination.answered(attempt).await;
    }
    bed.pass(3600);
    assert_eq!(worker.run_once().await.unwrap(), 0);
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!(row.state, State::Dead);
    let tried = row.counts.tried;
    assert_eq!(row.counts, Counts { attempts: 3, failures: 3, tried, ..Counts::default() });
    let attempts = bed.store.attempts(receipt).await.unwrap();
    let told: Vec<_> = attempts.iter().map(|a| (a.outcome.as_str(), a.detail.as_deref())).collect();
    let expected =
        [("retry", Some("failure 0")), ("retry", Some("failure 1")), ("dead", Some("failure 2"))];
    assert_eq!(told, expected);
    let keys: Vec<_> = destination.seen().into_iter().map(|(claimed, _)| claimed.key).collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

struct Panicking;

#[async_trait]
impl Consumer for Panicking {
    async fn deliver(&self, delivery: &Claimed, _: Payload) -> Report {
        tokio::task::yield_now().await;
        panic!("a bug with {}", delivery.event_id);
    }
}

async fn a_panic_is_a_failed_attempt(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let routes = vec![WorkRoute {
        consumer: Arc::new(Panicking),
        ..work(route, "billing", &Destination::new())
    }];
    let worker = by_hand(&bed.store, routes);
    let receipt = bed.due("e1", &[route]).await;
    assert_eq!(worker.run_once().await.unwrap(), 1);
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!((row.state, row.counts.failures), (State::Retrying, 1));
    assert_eq!(row.detail.as_deref(), Some("the handler panicked: a bug with e1"));
}

/// A quick destination is claimed for ahead, and still never gets more than it may.
async fn a_backlog_is_drained_within_the_concurrency(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    for batch in 0..4 {
        let events = (0..250).map(|n| bed.event(&format!("e{batch}_{n}"), &[route]));
        bed.record(events.collect()).await;
    }
    let destination = Destination::new();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options());
    destination.answered(1000).await;
    worker.idle().await;
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1000));
    assert_eq!(destination.seen().len(), 1000);
    assert!(destination.most_running() <= 4, "{} at once", destination.most_running());
    worker.stop(Duration::ZERO).await;
}

async fn an_ordered_route_is_worked_off_in_order(bed: Bed) {
    let route = bed.route("billing", RouteRules { ordered: true, ..RouteRules::default() }).await;
    let mut batch = Vec::new();
    for version in 1..=20 {
        for object in ["a", "b", "c"] {
            let event = bed.event(&format!("{object}{version}"), &[route]);
            batch.push(Arrival { object: Some(object.into()), version: Some(version), ..event });
        }
    }
    bed.record(batch).await;
    let destination = Destination::new();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options());
    destination.answered(60).await;
    worker.stop(Duration::ZERO).await;
    for object in ["a", "b", "c"] {
        let seen = destination.event_ids();
        let seen: Vec<_> = seen.iter().filter(|id| id.starts_with(object)).collect();
        let expected: Vec<_> = (1..=20).map(|version| format!("{object}{version}")).collect();
        assert!(seen.into_iter().eq(&expected), "{object} was out of order");
    }
}

async fn one_event_goes_through_each_of_its_routes(bed: Bed) {
    let billing = bed.route("billing", RouteRules::default()).await;
    let ledger = bed.route("ledger", RouteRules::default()).await;
    let (one, two) = (Destination::new(), Destination::new());
    two.answer([Report::failed("not yet")]);
    let routes = vec![work(billing, "billing", &one), work(ledger, "ledger", &two)];
    let worker = by_hand(&bed.store, routes);
    bed.due("e1", &[billing, ledger]).await;
    assert_eq!(worker.run_once().await.unwrap(), 2);
    assert_eq!(bed.states(&billing).await, ["e1 processed"]);
    assert_eq!(bed.states(&ledger).await, ["e1 retrying"]);
    let key = |destination: &Destination| destination.seen()[0].0.key.clone();
    assert_ne!(key(&one), key(&two));
}

/// Events from machines whose clocks are an hour off, either way, are delivered at once.
async fn clocks_of_receivers_do_not_matter(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    for (n, off) in [-3600, 0, 3600].into_iter().enumerate() {
        let template = bed.event(&format!("e{n}"), &[route]);
        let now = oncebox::clock::Clock::now(&oncebox::clock::SystemClock);
        let at = time(now.as_second() + off);
        let arrival = bed.arrival_at(&template.event_id, "{}", at);
        bed.send(Arrival { takers: template.takers, ..arrival }).await;
    }
    assert_eq!(worker.run_once().await.unwrap(), 3);
    assert_eq!(bed.states(&route).await.len(), 3);
    assert!(time(NOON) < destination.seen()[0].0.received_at);
}
