//! Routes beside each other: each has its places, its breaker and its share of the memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use oncebox::delivery::{Claimed, Outcome, Payload};
use oncebox::limits::CLAIM_ROWS;
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox::store::{self, Purpose, Store};
use oncebox::worker::{BreakerState, Consumer, Health, Report, WorkRoute, Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::gate::Gate;
use oncebox_testkit::store::{Bed, act, until};
use tokio::sync::watch;

use crate::bed::{Destination, by_hand, options, work, work_off};

for_each_store!(
    a_hanging_route_delays_no_other,
    a_dead_destination_is_left_alone_and_ramped_up,
    an_opened_breaker_returns_what_waits,
    events_that_always_fail_delay_no_others,
    a_destination_that_asks_for_less_gets_half,
    payloads_stay_within_the_memory,
    a_giant_is_delivered_alone,
    a_removed_route_is_no_longer_claimed,
    a_changed_route_is_worked_for_as_it_is_now,
    a_paused_route_waits,
    two_workers_share_the_work,
    a_change_of_rules_lets_everything_go,
);

/// One route of a hundred hangs, with more due than it has places. The others finish everything.
async fn a_hanging_route_delays_no_other(bed: Bed) {
    let (hanging, destination) = (Destination::new(), Destination::new());
    hanging.hold_up();
    let mut routes = Vec::new();
    let mut takers = Vec::new();
    for n in 0..100 {
        let name = format!("route-{n}");
        let route = bed.route(&name, RouteRules::default()).await;
        routes.push(work(route, &name, if n == 42 { &hanging } else { &destination }));
        takers.push(route);
    }
    let worker = Worker::start(bed.store.clone(), routes, options());
    let events = (0..10).map(|n| bed.event(&format!("e{n}"), &takers));
    bed.record(events.collect()).await;
    destination.answered(990).await;
    hanging.begun(4).await;
    until(|| bed.rows("finished") == 990).await;
    assert_eq!(hanging.seen().len(), 4);
    hanging.let_go();
    hanging.answered(10).await;
    worker.stop(Duration::ZERO).await;
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1000));
    assert_eq!(hanging.most_running(), 4);
}

/// Twenty are due when the destination is down. Eight attempts find out, the others are not
/// charged; when it is back it gets one, then one, two, and only then as many as it may have.
async fn a_dead_destination_is_left_alone_and_ramped_up(bed: Bed) {
    let rules = RouteRules { base: Duration::from_secs(3600), ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let destination = Destination::new();
    destination.answer((0..8).map(|_| unwell(Health::Failing)));
    let routes = vec![WorkRoute { concurrency: 8, ..work(route, "billing", &destination) }];
    let worker = by_hand(&bed.store, routes);
    let events = (0..20).map(|n| bed.event(&format!("e{n}"), &[route]));
    bed.record(events.collect()).await;

    assert_eq!(worker.run_once().await.unwrap(), 8);
    let (name, view) = worker.breakers().remove(0);
    assert_eq!((&*name, view.state), ("billing", BreakerState::Open));
    assert_eq!(view.reason.as_deref(), Some("5 of the last 5 deliveries failed"));
    assert!(view.next_probe.is_some());
    worker.tell_breakers().await.unwrap();
    let told = bed.store.breakers().await.unwrap();
    assert_eq!((told[0].route, told[0].state.as_str()), (route.no, "open"));
    assert!(told[0].next_probe_at.is_some());
    assert_eq!(worker.run_once().await.unwrap(), 0);
    assert_eq!(bed.query("SELECT sum(attempts) FROM deliveries WHERE state = 'received'"), "0");

    until(|| state(&worker) == BreakerState::HalfOpen).await;
    let mut ramp = Vec::new();
    for _ in 0..3 {
        let moved = worker.run_once().await.unwrap();
        ramp.push((moved, state(&worker)));
    }
    let expected =
        [(1, BreakerState::Ramping(1)), (1, BreakerState::Ramping(2)), (2, BreakerState::Closed)];
    assert_eq!(ramp, expected);
    worker.tell_breakers().await.unwrap();
    assert_eq!(bed.store.breakers().await.unwrap(), []);
    assert_eq!(work_off(&worker).await.iter().sum::<usize>(), 8);
    assert_eq!(bed.rows("finished"), 12);
}

/// A report of trouble with the destination, to be tried again in an hour.
fn unwell(health: Health) -> Report {
    let outcome = Outcome::Retry { after: Some(Duration::from_secs(3600)) };
    Report { health, ..Report::of(outcome) }
}

fn state(worker: &Worker) -> BreakerState {
    worker.breakers()[0].1.state
}

/// Answers 500 to a tenth of all events, whenever they come.
#[derive(Default)]
struct Poisoned {
    tried: Mutex<HashMap<String, u32>>,
}

#[async_trait]
impl Consumer for Poisoned {
    async fn deliver(&self, delivery: &Claimed, _: Payload) -> Report {
        *self.tried.lock().unwrap().entry(delivery.event_id.clone()).or_default() += 1;
        match delivery.event_id.ends_with("poison") {
            true => Report { status: Some(500), ..Report::failed("it broke") },
            false => Report::of(Outcome::Processed),
        }
    }
}

/// Ten events a second for a minute, one of which is always answered 500. Each second everything
/// that came is tried within it, and what is well is done at its first attempt.
async fn events_that_always_fail_delay_no_others(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let poisoned = Arc::new(Poisoned::default());
    let consumer: Arc<dyn Consumer> = poisoned.clone();
    let routes = vec![WorkRoute { consumer, ..work(route, "billing", &Destination::new()) }];
    let worker = by_hand(&bed.store, routes);
    for second in 1..=60 {
        let id = |n| if n == 0 { format!("{second}-poison") } else { format!("{second}-{n}") };
        bed.record((0..10).map(|n| bed.event(&id(n), &[route])).collect()).await;
        work_off(&worker).await;
        assert_eq!(bed.rows("finished"), 9 * second, "after {second} s");
        assert_eq!(state(&worker), BreakerState::Closed, "after {second} s");
        bed.pass(1);
    }
    let tried = poisoned.tried.lock().unwrap();
    assert_eq!(tried.len(), 600);
    let well = tried.iter().filter(|(id, _)| !id.ends_with("poison"));
    assert!(well.into_iter().all(|(_, attempts)| *attempts == 1));
    assert!(tried["1-poison"] >= 3, "it is tried again and again");
}

/// It is slowed down instead of left alone.
async fn a_destination_that_asks_for_less_gets_half(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    destination.answer([unwell(Health::Overloaded)]);
    let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    bed.due("e0", &[route]).await;
    assert_eq!(worker.run_once().await.unwrap(), 1);
    let view = worker.breakers().remove(0).1;
    assert_eq!((view.state, view.as_str()), (BreakerState::Closed, "slowed"));
    let slowed = view.slowed_to.unwrap();
    assert!(slowed < 1.0, "{slowed}");
    worker.tell_breakers().await.unwrap();
    assert_eq!(bed.store.breakers().await.unwrap()[0].state, "slowed");

    bed.record((1..=3).map(|n| bed.event(&format!("e{n}"), &[route])).collect()).await;
    assert_eq!(work_off(&worker).await.iter().sum::<usize>(), 1, "one, and then a pause");
}

/// A quick destination was claimed for ahead when it went down: what had not begun goes back
/// uncharged.
async fn an_opened_breaker_returns_what_waits(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    bed.due("e0", &[route]).await;
    assert_eq!(worker.run_once().await.unwrap(), 1);

    destination.answer(std::iter::repeat_n(unwell(Health::Failing), 100));
    let events = (1..=30).map(|n| bed.event(&format!("e{n}"), &[route]));
    bed.record(events.collect()).await;
    while state(&worker) == BreakerState::Closed {
        worker.run_once().await.unwrap();
    }
    let tried = destination.seen().len() - 1;
    assert!((4..=8).contains(&tried), "{tried} attempts");
    let charged = bed.query("SELECT sum(attempts) FROM deliveries");
    assert_eq!(charged, tried.to_string());
}

/// Five routes with three payloads each, and memory for four payloads.
async fn payloads_stay_within_the_memory(bed: Bed) {
    const BODY: usize = 100 << 10;
    let destination = Destination::new();
    destination.hold_up();
    let (mut routes, mut takers) = (Vec::new(), Vec::new());
    for n in 0..5 {
        let name = format!("route-{n}");
        let route = bed.route(&name, RouteRules::default()).await;
        routes.push(work(route, &name, &destination));
        takers.push(route);
    }
    let options = WorkerOptions { memory: 4 * (BODY + 1024), ..options() };
    let worker = Worker::start(bed.store.clone(), routes, options);
    for n in 0..3 {
        let event = bed.event(&format!("e{n}"), &takers);
        bed.send(bed.with_body(event, "x".repeat(BODY))).await;
    }
    destination.begun(4).await;
    until(|| bed.query("SELECT count(*) FROM deliveries WHERE state = 'processing'") == "15").await;
    assert_eq!(destination.seen().len(), 4);
    destination.let_go();
    destination.answered(15).await;
    worker.stop(Duration::ZERO).await;
    assert!(destination.most_running() <= 4, "{} at once", destination.most_running());
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 15));
}

async fn a_giant_is_delivered_alone(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let options = WorkerOptions { memory: 10 << 10, ..options() };
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options);
    for n in 0..5 {
        let event = bed.event(&format!("e{n}"), &[route]);
        bed.send(bed.with_body(event, "x".repeat(100 << 10))).await;
    }
    destination.answered(5).await;
    worker.stop(Duration::ZERO).await;
    assert_eq!(destination.most_running(), 1);
    assert_eq!(bed.rows("finished"), 5);
}

async fn a_removed_route_is_no_longer_claimed(bed: Bed) {
    let billing = bed.route("billing", RouteRules::default()).await;
    let ledger = bed.route("ledger", RouteRules::default()).await;
    let (one, two) = (Destination::new(), Destination::new());
    one.hold_up();
    let both = vec![work(billing, "billing", &one), work(ledger, "ledger", &two)];
    let worker = Worker::start(bed.store.clone(), both, options());
    bed.due("e1", &[billing, ledger]).await;
    one.begun(1).await;
    worker.set_routes(vec![work(ledger, "ledger", &two)]);
    bed.due("e2", &[billing, ledger]).await;
    two.answered(2).await;
    one.let_go();
    worker.stop(Duration::ZERO).await;
    assert_eq!(bed.states(&billing).await, ["e1 processed", "e2 received"]);
    assert_eq!(bed.states(&ledger).await, ["e1 processed", "e2 processed"]);
    assert_eq!(worker.breakers().len(), 1);
}

async fn a_changed_route_is_worked_for_as_it_is_now(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let (before, after) = (Destination::new(), Destination::new());
    after.hold_up();
    let worker = Worker::start(bed.store.clone(), Vec::new(), options());
    worker.set_routes(vec![work(route, "billing", &before)]);
    bed.due("e0", &[route]).await;
    before.answered(1).await;
    worker.idle().await;
    worker.set_routes(vec![WorkRoute { concurrency: 2, ..work(route, "billing", &after) }]);
    let events = (1..=10).map(|n| bed.event(&format!("e{n}"), &[route]));
    bed.record(events.collect()).await;
    after.begun(2).await;
    after.let_go();
    after.answered(10).await;
    worker.stop(Duration::ZERO).await;
    assert_eq!((before.seen().len(), after.most_running()), (1, 2));
    assert_eq!(bed.rows("finished"), 11);
}

async fn a_paused_route_waits(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    bed.due("e1", &[route]).await;
    assert!(bed.store.pause_route("billing", true, &act("deploy")).await.unwrap());
    assert_eq!(worker.run_once().await.unwrap(), 0);
    assert!(bed.store.pause_route("billing", false, &act("done")).await.unwrap());
    assert_eq!(worker.run_once().await.unwrap(), 1);
}

/// One of two workers. Its first delivery waits until the other has one too.
struct Meeting {
    mine: watch::Sender<Vec<Claimed>>,
    other: watch::Receiver<Vec<Claimed>>,
}

#[async_trait]
impl Consumer for Meeting {
    async fn deliver(&self, delivery: &Claimed, _: Payload) -> Report {
        self.mine.send_modify(|seen| seen.push(delivery.clone()));
        let mut other = self.other.clone();
        let _ = other.wait_for(|seen| !seen.is_empty()).await;
        Report::of(Outcome::Processed)
    }
}

/// On PostgreSQL each worker has connections of its own, as on two machines.
async fn two_workers_share_the_work(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let beside: Arc<dyn Store> = match bed.on_sqlite() {
        true => bed.store.clone(),
        false => store::open(&bed.url, Purpose::Serve).await.unwrap(),
    };
    let (one, two) = (watch::Sender::default(), watch::Sender::default());
    let start = |store: &Arc<dyn Store>, mine: &watch::Sender<_>, other: &watch::Sender<_>| {
        let consumer = Meeting { mine: mine.clone(), other: other.subscribe() };
        let consumer: Arc<dyn Consumer> = Arc::new(consumer);
        let route = work(route, "billing", &Destination::new());
        let routes = vec![WorkRoute { consumer, ..route }];
        Worker::start(store.clone(), routes, options())
    };
    let (first, second) = (start(&bed.store, &one, &two), start(&beside, &two, &one));
    for batch in 0..4 {
        let events = (0..100).map(|n| bed.event(&format!("e{batch}_{n}"), &[route]));
        bed.record(events.collect()).await;
    }
    until(|| one.borrow().len() + two.borrow().len() >= 400).await;
    first.stop(Duration::from_secs(10)).await;
    second.stop(Duration::from_secs(10)).await;
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 400));
    let seen: Vec<Claimed> = one.borrow().iter().chain(two.borrow().iter()).cloned().collect();
    let deliveries: HashSet<_> = seen.iter().map(|claimed| claimed.delivery).collect();
    assert_eq!((seen.len(), deliveries.len()), (400, 400));
    assert!(!one.borrow().is_empty() && !two.borrow().is_empty());
    if !bed.on_sqlite() {
        beside.close().await;
    }
}

/// More is held than is looked at in one go, behind what nobody is going to mend.
async fn a_change_of_rules_lets_everything_go(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let ordered = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", ordered).await;
    let events: Vec<Arrival> = (0..=2 * CLAIM_ROWS)
        .map(|n| Arrival { object: Some("in_1".into()), ..bed.event(&format!("e{n}"), &[route]) })
        .collect();
    bed.record(events).await;
    bed.kill(&route).await;
    assert_eq!(bed.take_all(&route).await.len(), 0, "all others are held");

    let destination = Destination::new();
    let worker = Worker::start(gate.clone(), vec![work(route, "billing", &destination)], options());
    gate.await_looks(2).await;
    let free = bed.route("billing", RouteRules::default()).await;
    worker.set_routes(vec![work(free, "billing", &destination)]);
    destination.answered(2 * CLAIM_ROWS).await;
    worker.stop(Duration::from_secs(10)).await;
    assert_eq!(bed.rows("deliveries"), 1, "the dead one");
}
