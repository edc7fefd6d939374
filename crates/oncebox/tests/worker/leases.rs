//! Leases: kept while work goes on, lost to somebody else, taken over from the dead.

use std::time::Duration;

use oncebox::delivery::{Counts, Next, State};
use oncebox::route::RouteRules;
use oncebox::worker::{Report, Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Route};

use crate::bed::{Destination, Notes, by_hand, options, work, work_off};

for_each_store!(
    a_lost_lease_cuts_the_attempt_short,
    a_zombie_changes_nothing,
    a_heartbeat_keeps_a_long_attempt,
    the_heartbeat_beats_by_itself,
    a_dead_workers_delivery_is_taken_over,
    a_poison_event_ends_in_dead,
    what_crashed_before_is_delivered_apart,
    what_crashed_long_ago_holds_nobody_up,
);

async fn route(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

/// Somebody else takes the delivery while it hangs; the heartbeat finds out and drops the attempt.
async fn a_lost_lease_cuts_the_attempt_short(bed: Bed) {
    let route = route(&bed).await;
    let (destination, notes) = (Destination::new(), Notes::new());
    destination.hold_up();
    let options = WorkerOptions { observer: notes.clone(), ..options() };
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::by_hand(bed.store.clone(), routes, options);
    let receipt = bed.due("e1", &[route]).await;
    assert_eq!(worker.claim_once().await.unwrap(), 1);
    destination.begun(1).await;

    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().retrying, [route.of(receipt)]);
    let taken_over = bed.take(&route).await;
    assert_eq!(worker.beat().await.unwrap(), 1);
    destination.dropped(1).await;
    worker.idle().await;
    assert_eq!(notes.lines(), ["billing e1 lease lost"]);

    assert!(bed.finish(&taken_over, Next::Processed).await);
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!(row.counts, Counts { attempts: 2, crashes: 1, ..Counts::default() });
}

/// The worker slept through its lease and comes back with an answer: nobody listens.
async fn a_zombie_changes_nothing(bed: Bed) {
    let route = route(&bed).await;
    let (destination, notes) = (Destination::new(), Notes::new());
    destination.hold_up();
    let options = WorkerOptions { observer: notes.clone(), ..options() };
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::by_hand(bed.store.clone(), routes, options);
    let receipt = bed.due("e1", &[route]).await;
    assert_eq!(worker.claim_once().await.unwrap(), 1);
    destination.begun(1).await;

    bed.pass(61);
    bed.store.rescue(10).await.unwrap();
    let taken_over = bed.take(&route).await;
    let before = bed.delivery(route.of(receipt)).await;
    destination.let_go();
    worker.idle().await;
    assert_eq!(bed.delivery(route.of(receipt)).await, before);
    assert_eq!(before.state, State::Processing);
    assert_eq!(notes.lines(), ["billing e1 lease lost"]);
    assert_eq!(destination.seen()[0].0.key, taken_over.key);
    assert!(bed.finish(&taken_over, Next::Processed).await);
}

async fn a_heartbeat_keeps_a_long_attempt(bed: Bed) {
    let route = route(&bed).await;
    let destination = Destination::new();
    destination.hold_up();
    let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    let receipt = bed.due("e1", &[route]).await;
    assert_eq!(worker.claim_once().await.unwrap(), 1);
    destination.begun(1).await;
    for _ in 0..3 {
        bed.pass(40);
        assert_eq!(worker.beat().await.unwrap(), 1);
    }
    bed.pass(40);
    assert!(worker.rescue().await.unwrap().retrying.is_empty());
    destination.let_go();
    worker.idle().await;
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!((row.state, row.counts.attempts), (State::Processed, 1));
}

/// A started worker extends its leases without being told.
async fn the_heartbeat_beats_by_itself(bed: Bed) {
    let route = route(&bed).await;
    let destination = Destination::new();
    destination.hold_up();
    let options = WorkerOptions { lease: Duration::from_secs(3), ..options() };
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options);
    let delivery = route.of(bed.due("e1", &[route]).await);
    destination.begun(1).await;
    let first = bed.delivery(delivery).await.lease_until;
    while bed.delivery(delivery).await.lease_until == first {
        tokio::task::yield_now().await;
    }
    destination.let_go();
    worker.idle().await;
    let row = bed.delivery(delivery).await;
    assert_eq!((row.state, row.counts.attempts), (State::Processed, 1));
    worker.stop(Duration::ZERO).await;
}

async fn a_dead_workers_delivery_is_taken_over(bed: Bed) {
    let route = route(&bed).await;
    let (hanging, destination) = (Destination::new(), Destination::new());
    hanging.hold_up();
    let first = by_hand(&bed.store, vec![work(route, "billing", &hanging)]);
    let receipt = bed.due("e1", &[route]).await;
    assert_eq!(first.claim_once().await.unwrap(), 1);
    hanging.begun(1).await;
    drop(first);
    hanging.dropped(1).await;

    let notes = Notes::new();
    let options = WorkerOptions { observer: notes.clone(), ..options() };
    let routes = vec![work(route, "billing", &destination)];
    let second = Worker::by_hand(bed.store.clone(), routes, options);
    assert!(second.rescue().await.unwrap().retrying.is_empty());
    assert_eq!(second.run_once().await.unwrap(), 0);
    bed.pass(61);
    assert_eq!(second.rescue().await.unwrap().retrying, [route.of(receipt)]);
    assert_eq!(second.run_once().await.unwrap(), 1);
    assert_eq!(notes.lines(), ["billing e1 processed", "rescued 1, dead 0"]);
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!(row.counts, Counts { attempts: 2, crashes: 1, ..Counts::default() });
}

/// Every worker that touches the event dies of it.
async fn a_poison_event_ends_in_dead(bed: Bed) {
    let rules = RouteRules { max_attempts: 2, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let receipt = bed.due("e1", &[route]).await;
    let destination = Destination::new();
    destination.hold_up();
    for attempt in 1..=2 {
        let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
        assert_eq!(worker.claim_once().await.unwrap(), 1);
        destination.begun(attempt).await;
        drop(worker);
        bed.pass(61);
        bed.store.rescue(10).await.unwrap();
    }
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!(row.state, State::Dead);
    assert_eq!(row.counts, Counts { attempts: 2, crashes: 2, ..Counts::default() });
}

/// Three were lost together. They come back apart from the others, so that what killed their worker
/// charges none of those; the others do not wait for ever.
async fn what_crashed_before_is_delivered_apart(bed: Bed) {
    let route = route(&bed).await;
    let (hanging, destination) = (Destination::new(), Destination::new());
    hanging.hold_up();
    destination.hold_up();
    let first = by_hand(&bed.store, vec![work(route, "billing", &hanging)]);
    for n in 1..=3 {
        bed.due(&format!("e{n}"), &[route]).await;
    }
    assert_eq!(first.claim_once().await.unwrap(), 3);
    hanging.begun(3).await;
    drop(first);
    bed.pass(61);
    let second = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    assert_eq!(second.rescue().await.unwrap().retrying.len(), 3);
    for n in 4..=6 {
        bed.due(&format!("e{n}"), &[route]).await;
    }
    assert_eq!(second.claim_once().await.unwrap(), 3);
    assert_eq!(second.claim_once().await.unwrap(), 0);
    destination.let_go();
    second.idle().await;
    assert_eq!(work_off(&second).await, [3]);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 6));
}

/// Only the attempt after a crash is made alone. A retry that comes later, by itself or not, is one
/// like any other.
async fn what_crashed_long_ago_holds_nobody_up(bed: Bed) {
    let route = route(&bed).await;
    bed.due("e1", &[route]).await;
    bed.take(&route).await;
    bed.pass(61);
    let destination = Destination::new();
    let worker = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    assert_eq!(worker.rescue().await.unwrap().retrying.len(), 1);
    destination.answer([Report::failed("not now")]);
    assert_eq!(worker.run_once().await.unwrap(), 1);
    bed.pass(3600);

    destination.hold_up();
    assert_eq!(worker.claim_once().await.unwrap(), 1);
    destination.begun(2).await;
    bed.due("e2", &[route]).await;
    assert_eq!(worker.claim_once().await.unwrap(), 1);
    destination.begun(3).await;
    destination.let_go();
    worker.idle().await;
    assert_eq!(bed.states(&route).await, ["e1 processed", "e2 processed"]);
}
