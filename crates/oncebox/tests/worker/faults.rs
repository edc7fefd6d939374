//! A store that fails while the worker works.

use std::sync::Arc;
use std::time::Duration;

use oncebox::delivery::State;
use oncebox::route::RouteRules;
use oncebox::store::{Store, StoreError};
use oncebox::worker::{Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::gate::Gate;
use oncebox_testkit::store::Bed;

use crate::bed::{Destination, Notes, options, work};

for_each_store!(
    a_claim_that_fails_is_made_again,
    an_outcome_waits_for_the_store,
    a_refused_ending_does_not_fail_its_neighbours,
    an_outcome_the_store_never_heard_is_tried_again,
    a_failed_store_is_told_of,
);

fn away() -> StoreError {
    StoreError::Unavailable("away".into())
}

fn unknown() -> StoreError {
    StoreError::UnknownOutcome("cut".into())
}

async fn a_claim_that_fails_is_made_again(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    gate.fail_claims([away(), unknown(), away()]);
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    bed.due("e1", &[route]).await;
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::start(gate, routes, options());
    destination.answered(1).await;
    worker.stop(Duration::ZERO).await;
    assert_eq!(bed.states(&route).await, ["e1 processed"]);
}

async fn an_outcome_waits_for_the_store(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    gate.fail_endings([away(), unknown(), away()]);
    let (destination, notes) = (Destination::new(), Notes::new());
    let state = finish_through(&bed, gate, &destination, &notes).await;
    assert_eq!(destination.seen().len(), 1);
    assert_eq!(notes.lines(), ["billing e1 processed"]);
    assert_eq!(state, State::Processed);
}

/// The commits happened and their answers were lost, as only PostgreSQL can lose them.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_is_finished_again() {
    let bed = Bed::postgres().await;
    let gate = Gate::after(bed.store.clone(), []);
    gate.fail_endings([unknown(), unknown()]);
    let (destination, notes) = (Destination::new(), Notes::new());
    let state = finish_through(&bed, gate, &destination, &notes).await;
    assert_eq!(destination.seen().len(), 1);
    assert_eq!(notes.lines(), ["billing e1 processed"]);
    assert_eq!(state, State::Processed);
}

async fn finish_through(
    bed: &Bed,
    store: Arc<dyn Store>,
    destination: &Arc<Destination>,
    notes: &Arc<Notes>,
) -> State {
    let route = bed.route("billing", RouteRules::default()).await;
    let receipt = bed.due("e1", &[route]).await;
    let options = WorkerOptions { observer: notes.clone(), ..options() };
    let worker = Worker::by_hand(store, vec![work(route, "billing", destination)], options);
    assert_eq!(worker.run_once().await.unwrap(), 1);
    bed.delivery(route.of(receipt)).await.state
}

/// Whatever was in the batch that was refused is finished one by one, without its texts if need
/// be.
async fn a_refused_ending_does_not_fail_its_neighbours(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    gate.fail_endings([0; 2].map(|_| StoreError::Data("no".into())));
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let worker = Worker::by_hand(gate, vec![work(route, "billing", &destination)], options());
    for n in 1..=4 {
        bed.due(&format!("e{n}"), &[route]).await;
    }
    assert_eq!(worker.run_once().await.unwrap(), 4);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 4));
    assert_eq!(destination.seen().len(), 4);
}

/// The store is away until the lease has ended: the delivery comes again, under the same key.
async fn an_outcome_the_store_never_heard_is_tried_again(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    gate.fail_endings((0..100).map(|_| away()));
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let receipt = bed.due("e1", &[route]).await;
    let brief = WorkerOptions { lease: Duration::from_millis(200), ..options() };
    let routes = vec![work(route, "billing", &destination)];
    let first = Worker::by_hand(gate, routes.clone(), brief);
    assert_eq!(first.run_once().await.unwrap(), 1);
    assert_eq!(bed.delivery(route.of(receipt)).await.state, State::Processing);

    let second = Worker::by_hand(bed.store.clone(), routes, options());
    bed.pass(1);
    assert_eq!(second.rescue().await.unwrap().retrying, [route.of(receipt)]);
    assert_eq!(second.run_once().await.unwrap(), 1);
    assert_eq!(bed.delivery(route.of(receipt)).await.state, State::Processed);
    let seen = destination.seen();
    assert_eq!(seen[0].0.key, seen[1].0.key);
    assert!(seen[0].0.lease < seen[1].0.lease);
}

async fn a_failed_store_is_told_of(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    gate.fail_claims([StoreError::Fatal("a sync failed".into())]);
    let worker = Worker::start(gate, Vec::new(), options());
    let route = bed.route("billing", RouteRules::default()).await;
    worker.set_routes(vec![work(route, "billing", &Destination::new())]);
    assert_eq!(worker.failed().await, "a sync failed");
    worker.stop(Duration::ZERO).await;
}
