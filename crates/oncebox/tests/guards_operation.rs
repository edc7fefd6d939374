//! Repeated operations: the second waits for the first, and is skipped once that was processed.

use std::time::Duration;

use oncebox::delivery::{Next, Reason, State};
use oncebox::receipt::{Arrival, ReceiptId, Taker};
use oncebox::route::{OnDead, RouteRules};
use oncebox::store::Acted;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, Route, act, time};

for_each_store!(
    a_repetition_waits_while_the_first_is_open,
    a_repetition_is_skipped_once_the_first_was_processed,
    a_repetition_runs_if_the_first_is_discarded,
    a_repetition_runs_if_the_first_was_skipped,
    a_dead_first_holds_its_repetitions,
    a_dead_first_lets_go_where_the_route_goes_on,
    a_lost_first_holds_its_repetitions,
    a_poison_first_lets_go_where_the_route_goes_on,
    the_window_is_between_times_of_receipt,
    the_last_processed_is_what_repetitions_name,
    without_an_operation_nothing_is_compared,
    operations_are_per_route,
    a_released_repetition_runs,
    a_change_of_rules_lets_go,
    operations_and_order_go_together,
    an_older_repetition_does_not_block_the_first,
);

const SECOND: Duration = Duration::from_secs(1);
const WINDOW: i64 = 300;

fn once_per_window() -> RouteRules {
    RouteRules {
        same_operation: Some(Duration::from_secs(WINDOW.unsigned_abs())),
        ..RouteRules::default()
    }
}

/// An event of an operation, received that many seconds after noon.
fn event(bed: &Bed, route: Route, event_id: &str, operation: u8, after: i64) -> Arrival {
    let taker = Taker { operation: Some([operation; 16]), ..route.taker() };
    let arrival = bed.arrival_at(event_id, &format!("{{{event_id}}}"), time(NOON + after));
    Arrival { object: None, version: None, takers: vec![taker], ..arrival }
}

async fn send(bed: &Bed, route: Route, event_id: &str, after: i64) -> ReceiptId {
    bed.send(event(bed, route, event_id, 7, after)).await
}

async fn a_repetition_waits_while_the_first_is_open(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    let second = send(&bed, route, "e2", 1).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!(claims.claimed.len(), 1);
    assert_eq!(claims.claimed[0].event_id, "e1");
    assert!(claims.claimed[0].guarded);
    assert_eq!(claims.held, [(route.of(second), Reason::SameOperation)]);
    assert!(bed.finish(&claims.claimed[0], Next::Retry(60 * SECOND)).await);
    send(&bed, route, "e3", 2).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    let waiting = ["e1 retrying", "e2 held:same-operation", "e3 held:same-operation"];
    assert_eq!(bed.states(&route).await, waiting);
    // Held, they are no candidates.
    assert!(bed.claim(&route, 10).await.held.is_empty());
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 0);
    bed.pass(60);
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    let done = ["e1 processed", "e2 skipped:same-operation", "e3 skipped:same-operation"];
    assert_eq!(bed.states(&route).await, done);
}

async fn a_repetition_is_skipped_once_the_first_was_processed(mut bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    let first = send(&bed, route, "e1", 0).await;
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    bed.reopen().await;
    let second = send(&bed, route, "e2", 10).await;
    bed.send(event(&bed, route, "other", 8, 11)).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!(claims.skipped, [(route.of(second), Reason::SameOperation)]);
    assert_eq!(claims.claimed.len(), 1);
    assert_eq!(claims.claimed[0].event_id, "other");
    let row = bed.delivery(route.of(second)).await;
    assert_eq!((row.state, row.reason), (State::Skipped, Some(Reason::SameOperation)));
    assert_eq!(row.first, Some(first));
    assert_eq!(row.counts.attempts, 0);
    let standing = bed.store.standing(route.of(second)).await.unwrap().unwrap();
    assert_eq!(standing.reason, Some(Reason::SameOperation));
}

async fn a_repetition_runs_if_the_first_is_discarded(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    send(&bed, route, "e2", 1).await;
    send(&bed, route, "e3", 2).await;
    let dead = bed.kill(&route).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(bed.store.discard(dead, &act("wrong amount")).await.unwrap(), Acted::Done);
    assert_eq!(bed.work_off(&route).await, ["e2"]);
    let states = ["e1 skipped:discarded", "e2 processed", "e3 skipped:same-operation"];
    assert_eq!(bed.states(&route).await, states);
}

async fn a_repetition_runs_if_the_first_was_skipped(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    send(&bed, route, "e2", 1).await;
    let first = bed.claim(&route, 10).await.claimed.remove(0);
    assert!(bed.finish(&first, Next::Stale).await);
    assert_eq!(bed.work_off(&route).await, ["e2"]);
}

async fn a_dead_first_holds_its_repetitions(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    bed.kill(&route).await;
    send(&bed, route, "e2", 1).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(bed.states(&route).await, ["e1 dead", "e2 held:same-operation"]);
}

async fn a_dead_first_lets_go_where_the_route_goes_on(bed: Bed) {
    let rules = RouteRules { on_dead: OnDead::Continue, ..once_per_window() };
    let route = bed.route("billing", rules).await;
    send(&bed, route, "e1", 0).await;
    send(&bed, route, "e2", 1).await;
    let first = bed.claim(&route, 10).await.claimed.remove(0);
    assert!(bed.finish(&first, Next::Dead).await);
    assert_eq!(bed.work_off(&route).await, ["e2"]);
}

async fn a_lost_first_holds_its_repetitions(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    send(&bed, route, "e2", 1).await;
    assert_eq!(bed.claim(&route, 10).await.held.len(), 1);
    bed.pass(61);
    bed.store.rescue(10).await.unwrap();
    assert_eq!(bed.states(&route).await, ["e1 retrying", "e2 held:same-operation"]);
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    assert_eq!(bed.states(&route).await, ["e1 processed", "e2 skipped:same-operation"]);
}

async fn a_poison_first_lets_go_where_the_route_goes_on(bed: Bed) {
    let rules = RouteRules { on_dead: OnDead::Continue, max_attempts: 1, ..once_per_window() };
    let route = bed.route("billing", rules).await;
    send(&bed, route, "e1", 0).await;
    send(&bed, route, "e2", 1).await;
    assert_eq!(bed.claim(&route, 10).await.held.len(), 1);
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().dead.len(), 1);
    assert_eq!(bed.work_off(&route).await, ["e2"]);
}

/// As far apart as the window they are the same, further they are not, open or processed.
async fn the_window_is_between_times_of_receipt(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    send(&bed, route, "at", WINDOW).await;
    bed.send(event(&bed, route, "x1", 8, 0)).await;
    bed.send(event(&bed, route, "x-beyond", 8, WINDOW + 1)).await;
    let claims = bed.claim(&route, 10).await;
    let ids: Vec<_> = claims.claimed.iter().map(|claimed| claimed.event_id.as_str()).collect();
    assert_eq!(ids, ["e1", "x1", "x-beyond"]);
    for claimed in &claims.claimed {
        assert!(bed.finish(claimed, Next::Processed).await);
    }
    assert_eq!(bed.work_off(&route).await, Vec::<String>::new());

    bed.send(event(&bed, route, "y1", 9, 0)).await;
    assert_eq!(bed.work_off(&route).await, ["y1"]);
    bed.send(event(&bed, route, "y-at", 9, WINDOW)).await;
    bed.send(event(&bed, route, "y-beyond", 9, WINDOW + 1)).await;
    assert_eq!(bed.work_off(&route).await, ["y-beyond"]);
}

async fn the_last_processed_is_what_repetitions_name(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    let second = send(&bed, route, "e2", WINDOW + 1).await;
    assert_eq!(bed.work_off(&route).await, ["e1", "e2"]);
    let third = send(&bed, route, "e3", WINDOW + 2).await;
    assert_eq!(bed.work_off(&route).await, Vec::<String>::new());
    assert_eq!(bed.delivery(route.of(third)).await.first, Some(second));
}

async fn without_an_operation_nothing_is_compared(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    bed.due("e1", &[route]).await;
    bed.due("e2", &[route]).await;
    assert_eq!(bed.claim(&route, 10).await.claimed.len(), 2);
}

async fn operations_are_per_route(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    let other = bed.route("other", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    bed.work_off(&route).await;
    send(&bed, other, "e2", 1).await;
    assert_eq!(bed.work_off(&other).await, ["e2"]);
}

async fn a_released_repetition_runs(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    let second = send(&bed, route, "e2", 1).await;
    let first = bed.claim(&route, 10).await.claimed.remove(0);
    assert!(bed.finish(&first, Next::Retry(60 * SECOND)).await);
    let released = bed.store.release(route.of(second), &act("it is another order")).await;
    assert_eq!(released.unwrap(), Acted::Done);
    assert_eq!(bed.work_off(&route).await, ["e2"]);
}

async fn a_change_of_rules_lets_go(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send(&bed, route, "e1", 0).await;
    send(&bed, route, "e2", 100).await;
    send(&bed, route, "e3", 200).await;
    let first = bed.claim(&route, 10).await.claimed.remove(0);

    // A narrower window takes one out of it; without the guard there is none to wait for.
    let narrow = RouteRules { same_operation: Some(120 * SECOND), ..once_per_window() };
    let route = bed.route("billing", narrow).await;
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 0);
    let route = bed.route("billing", RouteRules { same_operation: None, ..route.rules }).await;
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 2);
    assert_eq!(bed.work_off(&route).await, ["e2", "e3"]);
    assert!(bed.finish(&first, Next::Processed).await);
}

/// Guarded twice: a repetition that is skipped at its claim makes way in its lane.
async fn operations_and_order_go_together(bed: Bed) {
    let rules = RouteRules { ordered: true, skip_stale: true, ..once_per_window() };
    let route = bed.route("billing", rules).await;
    let versions = [("e1", 7, 1), ("e2", 7, 2), ("e3", 8, 3), ("e4", 7, 4)];
    for (id, operation, version) in versions {
        let arrival = event(&bed, route, id, operation, version);
        bed.send(Arrival { object: Some("a".into()), version: Some(version), ..arrival }).await;
    }
    assert_eq!(bed.work_off(&route).await, ["e1", "e3"]);
    let states =
        ["e1 processed", "e2 skipped:same-operation", "e3 processed", "e4 skipped:same-operation"];
    assert_eq!(bed.states(&route).await, states);
}

/// By version the repetition goes first, by operation it waits: they must not wait for each other,
/// claimed together or one by one.
async fn an_older_repetition_does_not_block_the_first(bed: Bed) {
    let rules = RouteRules { ordered: true, ..once_per_window() };
    let route = bed.route("billing", rules).await;
    for object in ["a", "b"] {
        for (id, operation, version) in [("1", Some(7), 5), ("2", Some(7), 3), ("3", None, 9)] {
            let id = format!("{object}{id}");
            let operation = operation.map(|byte| [byte ^ object.as_bytes()[0]; 16]);
            let takers = vec![Taker { operation, ..route.taker() }];
            let (object, version) = (Some(object.to_owned()), Some(version));
            bed.send(Arrival { object, version, takers, ..bed.event(&id, &[]) }).await;
        }
        let mut done = Vec::new();
        if object == "a" {
            for claimed in bed.claim(&route, 10).await.claimed {
                assert!(bed.finish(&claimed, Next::Processed).await);
                done.push(claimed.event_id);
            }
        }
        done.extend(bed.work_off(&route).await);
        assert_eq!(done, [format!("{object}1"), format!("{object}3")]);
    }
    let states = bed.states(&route).await;
    assert_eq!(
        (&states[1], &states[4]),
        (&"a2 skipped:same-operation".into(), &"b2 skipped:same-operation".into())
    );
}
