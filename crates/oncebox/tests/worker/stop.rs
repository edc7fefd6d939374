//! Stopping: what was not begun goes back, what is on the wire gets its grace.

use std::sync::Arc;
use std::time::Duration;

use oncebox::delivery::{Counts, State};
use oncebox::route::RouteRules;
use oncebox::worker::{Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::Bed;
use oncebox_testkit::wait;

use crate::bed::{Destination, by_hand, options, work};

for_each_store!(
    what_was_not_begun_is_returned_at_once,
    what_is_on_the_wire_gets_its_grace,
    what_outlasts_the_grace_is_retried,
    a_stopped_worker_claims_no_more,
);

/// One of four is with the destination, the others wait for memory. Another worker can have those
/// while the first is still being delivered, and their attempts count from one.
async fn what_was_not_begun_is_returned_at_once(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let (hanging, destination) = (Destination::new(), Destination::new());
    hanging.hold_up();
    let routes = vec![work(route, "billing", &hanging)];
    let small = WorkerOptions { memory: 1, ..options() };
    let first = Arc::new(Worker::by_hand(bed.store.clone(), routes, small));
    for n in 1..=4 {
        bed.due(&format!("e{n}"), &[route]).await;
    }
    assert_eq!(first.claim_once().await.unwrap(), 4);
    hanging.begun(1).await;

    let stopping = tokio::spawn({
        let first = first.clone();
        async move { first.stop(wait::DEADLINE).await }
    });
    let second = by_hand(&bed.store, vec![work(route, "billing", &destination)]);
    let mut taken_over = 0;
    while taken_over < 3 {
        taken_over += second.run_once().await.unwrap();
    }
    assert!(!stopping.is_finished());
    for (claimed, _) in destination.seen() {
        assert_eq!(claimed.counts, Counts { attempts: 1, ..Counts::default() });
    }
    hanging.let_go();
    stopping.await.unwrap();
    assert_eq!(hanging.seen().len(), 1);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 4));
    assert_eq!(bed.rows("attempts"), 0);
}

async fn what_is_on_the_wire_gets_its_grace(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    destination.hold_up();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Arc::new(Worker::start(bed.store.clone(), routes, options()));
    bed.due("e1", &[route]).await;
    destination.begun(1).await;
    let stopping = tokio::spawn({
        let worker = worker.clone();
        async move { worker.stop(wait::DEADLINE).await }
    });
    bed.due("e2", &[route]).await;
    destination.let_go();
    stopping.await.unwrap();
    assert_eq!(bed.states(&route).await[0], "e1 processed");
}

async fn what_outlasts_the_grace_is_retried(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    destination.hold_up();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options());
    let receipt = bed.due("e1", &[route]).await;
    destination.begun(1).await;
    worker.stop(Duration::ZERO).await;
    destination.dropped(1).await;
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!((row.state, row.counts.failures), (State::Retrying, 1));
    assert_eq!(row.detail.as_deref(), Some("the worker stopped"));
    assert_eq!(row.worker, None);
}

async fn a_stopped_worker_claims_no_more(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(bed.store.clone(), routes, options());
    worker.stop(Duration::ZERO).await;
    worker.stop(Duration::ZERO).await;
    bed.due("e1", &[route]).await;
    assert_eq!(worker.claim_once().await.unwrap(), 0);
    assert_eq!(bed.states(&route).await, ["e1 received"]);
}
