//! Order and staleness: what goes first, what waits, what comes too late.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oncebox::delivery::{Next, Reason, State};
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::route::{OnDead, RouteRules};
use oncebox::store::{self, Acted, Purpose};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Route, act};

for_each_store!(
    an_object_goes_one_at_a_time_by_version,
    without_versions_the_receipt_decides,
    others_flow_past_a_held_object,
    a_retrying_head_holds_its_followers,
    a_dead_head_holds_its_followers,
    a_dead_head_lets_go_where_the_route_goes_on,
    a_failing_head_lets_go_after_a_while_where_the_route_goes_on,
    an_older_version_that_comes_later_goes_first,
    held_deliveries_are_no_candidates,
    a_lost_head_goes_again_before_its_followers,
    a_poison_head_lets_go_where_the_route_goes_on,
    a_returned_head_goes_again_before_its_followers,
    a_released_delivery_passes_the_order,
    a_released_delivery_waits_for_the_one_in_flight,
    an_older_version_is_skipped_at_the_claim,
    an_equal_version_passes,
    an_unversioned_event_is_delivered,
    only_processed_moves_the_watermark,
    watermarks_are_per_route_source_and_object,
    a_stale_guard_has_one_in_flight,
    a_guard_without_order_waits_for_no_retry,
    events_about_nothing_are_not_held,
    a_change_of_rules_lets_go,
    operators_act_beside_the_server,
    workers_racing_keep_the_order,
);

const SECOND: Duration = Duration::from_secs(1);

fn in_order() -> RouteRules {
    RouteRules { ordered: true, ..RouteRules::default() }
}

fn fresh_only() -> RouteRules {
    RouteRules { skip_stale: true, ..RouteRules::default() }
}

fn about(bed: &Bed, route: Route, event_id: &str, object: &str, version: i64) -> Arrival {
    Arrival { object: Some(object.into()), version: Some(version), ..bed.event(event_id, &[route]) }
}

/// Records events whose id tells object and version: `a3` is version 3 of `a`.
async fn send(bed: &Bed, route: Route, event_ids: &[&str]) -> Vec<ReceiptId> {
    let batch: Vec<_> = event_ids
        .iter()
        .map(|id| about(bed, route, id, &id[..1], id[1..2].parse().unwrap()))
        .collect();
    let receipts = batch.iter().map(|arrival| arrival.receipt).collect();
    bed.record(batch).await;
    receipts
}

/// All in one claim, or one by one: the order is the same.
async fn an_object_goes_one_at_a_time_by_version(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    let receipts = send(&bed, route, &["a3", "a1", "a2"]).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!(claims.claimed.len(), 1);
    assert_eq!(claims.claimed[0].event_id, "a1");
    assert!(claims.claimed[0].guarded);
    let mut held = claims.held.clone();
    held.sort();
    let waits = |receipt| (route.of(receipt), Reason::Order);
    assert_eq!(held, [waits(receipts[0]), waits(receipts[2])]);
    assert_eq!(bed.states(&route).await, ["a3 held:order", "a1 processing", "a2 held:order"]);
    assert!(bed.finish(&claims.claimed[0], Next::Processed).await);
    assert_eq!(bed.work_off(&route).await, ["a2", "a3"]);

    send(&bed, route, &["b3", "b1", "b2"]).await;
    assert_eq!(bed.work_off(&route).await, ["b1", "b2", "b3"]);
}

/// Equal versions and none at all go by receipt.
async fn without_versions_the_receipt_decides(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1-first", "a1-second"]).await;
    for id in ["b-first", "b-second"] {
        let arrival = about(&bed, route, id, "b", 0);
        bed.send(Arrival { version: None, ..arrival }).await;
    }
    bed.backdate("a1-second", 200);
    bed.backdate("b-second", 200);
    let done = bed.work_off(&route).await;
    let of = |object: &str| -> Vec<&str> {
        done.iter().map(String::as_str).filter(|id| id.starts_with(object)).collect()
    };
    assert_eq!(of("a"), ["a1-first", "a1-second"]);
    assert_eq!(of("b"), ["b-first", "b-second"]);
}

async fn others_flow_past_a_held_object(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1", "a2", "a3", "b1", "c1"]).await;
    let claimed = bed.take_all(&route).await;
    let ids: Vec<_> = claimed.iter().map(|claimed| claimed.event_id.as_str()).collect();
    assert_eq!(ids, ["a1", "b1", "c1"]);
    send(&bed, route, &["a4", "b2"]).await;
    assert!(bed.finish(&claimed[1], Next::Processed).await);
    assert_eq!(bed.work_off(&route).await, ["b2"]);
}

async fn a_retrying_head_holds_its_followers(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1", "a2"]).await;
    let head = bed.take(&route).await;
    assert!(bed.finish(&head, Next::Retry(60 * SECOND)).await);
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(bed.states(&route).await, ["a1 retrying", "a2 held:order"]);
    send(&bed, route, &["a3"]).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    bed.pass(60);
    let head = bed.take(&route).await;
    assert_eq!(head.event_id, "a1");
    assert!(bed.finish(&head, Next::Snooze(60 * SECOND)).await);
    assert_eq!(bed.take_if_any(&route).await, None);
    bed.pass(60);
    assert_eq!(bed.work_off(&route).await, ["a1", "a2", "a3"]);
}

async fn a_dead_head_holds_its_followers(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1", "a2", "b1"]).await;
    let dead = bed.kill(&route).await;
    assert_eq!(bed.work_off(&route).await, ["b1"]);
    send(&bed, route, &["a3"]).await;
    assert_eq!(bed.work_off(&route).await, Vec::<String>::new());
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 0);
    let states = ["a1 dead", "a2 held:order", "b1 processed", "a3 held:order"];
    assert_eq!(bed.states(&route).await, states);

    assert_eq!(bed.store.discard(dead, &act("lost cause")).await.unwrap(), Acted::Done);
    assert_eq!(bed.work_off(&route).await, ["a2", "a3"]);
}

async fn a_dead_head_lets_go_where_the_route_goes_on(bed: Bed) {
    let rules = RouteRules { on_dead: OnDead::Continue, ..in_order() };
    let route = bed.route("billing", rules).await;
    send(&bed, route, &["a1", "a2", "a3"]).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!((claims.claimed.len(), claims.held.len()), (1, 2));
    assert!(bed.finish(&claims.claimed[0], Next::Dead).await);
    assert_eq!(bed.work_off(&route).await, ["a2", "a3"]);
    send(&bed, route, &["a4"]).await;
    assert_eq!(bed.work_off(&route).await, ["a4"]);
}

/// The head fails for an hour. From then on its followers pass, one at a time, and so do those that
/// come later.
async fn a_failing_head_lets_go_after_a_while_where_the_route_goes_on(bed: Bed) {
    let goes_on = RouteRules { on_dead: OnDead::Continue, ..in_order() };
    let holds = bed.route("holds", in_order()).await;
    let route = bed.route("billing", goes_on).await;
    for route in [holds, route] {
        let prefix = if route.no == holds.no { "h" } else { "a" };
        let ids: Vec<String> = (1..=3).map(|n| format!("{prefix}{n}")).collect();
        send(&bed, route, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let head = bed.claim(&route, 10).await.claimed.remove(0);
        assert!(bed.finish(&head, Next::Retry(7200 * SECOND)).await);
    }
    bed.pass(3500);
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 0);
    bed.pass(101);
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 1);
    assert_eq!(bed.work_off(&route).await, ["a2", "a3"]);
    send(&bed, route, &["a4"]).await;
    assert_eq!(bed.work_off(&route).await, ["a4"]);
    assert_eq!(bed.work_off(&holds).await, [""; 0]);
    bed.pass(3600);
    assert_eq!(bed.work_off(&route).await, ["a1"]);
    assert_eq!(bed.work_off(&holds).await, ["h1", "h2", "h3"]);
}

async fn an_older_version_that_comes_later_goes_first(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a5"]).await;
    let five = bed.take(&route).await;
    send(&bed, route, &["a3"]).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    assert!(bed.finish(&five, Next::Retry(SECOND)).await);
    bed.pass(1);
    assert_eq!(bed.work_off(&route).await, ["a3", "a5"]);
}

/// Held once, they are left alone until something lets them go.
async fn held_deliveries_are_no_candidates(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1", "a2", "a3", "a4"]).await;
    assert_eq!(bed.claim(&route, 10).await.held.len(), 3);
    bed.pass(10);
    let claims = bed.claim(&route, 10).await;
    assert!(claims.claimed.is_empty() && claims.held.is_empty() && claims.skipped.is_empty());
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 0);
    let states = bed.states(&route).await;
    assert_eq!(states[1..], ["a2 held:order", "a3 held:order", "a4 held:order"]);
    assert_eq!(bed.query("SELECT sum(attempts) FROM deliveries"), "1");
}

async fn a_lost_head_goes_again_before_its_followers(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1", "a2"]).await;
    bed.take(&route).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().retrying.len(), 1);
    assert_eq!(bed.states(&route).await, ["a1 retrying", "a2 held:order"]);
    assert_eq!(bed.work_off(&route).await, ["a1", "a2"]);
}

async fn a_poison_head_lets_go_where_the_route_goes_on(bed: Bed) {
    let rules = RouteRules { on_dead: OnDead::Continue, max_attempts: 1, ..in_order() };
    let route = bed.route("billing", rules).await;
    send(&bed, route, &["a1", "a2"]).await;
    assert_eq!(bed.claim(&route, 10).await.held.len(), 1);
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().dead.len(), 1);
    assert_eq!(bed.work_off(&route).await, ["a2"]);
}

async fn a_returned_head_goes_again_before_its_followers(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1", "a2"]).await;
    let head = bed.claim(&route, 10).await.claimed.remove(0);
    assert!(bed.finish(&head, Next::Return).await);
    assert_eq!(bed.work_off(&route).await, ["a1", "a2"]);
}

async fn a_released_delivery_passes_the_order(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    let receipts = send(&bed, route, &["a1", "a2", "a3"]).await;
    let head = bed.claim(&route, 10).await.claimed.remove(0);
    assert!(bed.finish(&head, Next::Retry(600 * SECOND)).await);
    let released = bed.store.release(route.of(receipts[1]), &act("urgent")).await.unwrap();
    assert_eq!(released, Acted::Done);
    assert_eq!(bed.work_off(&route).await, ["a2"]);
    assert_eq!(bed.states(&route).await, ["a1 retrying", "a2 processed", "a3 held:order"]);
    bed.pass(600);
    assert_eq!(bed.work_off(&route).await, ["a1", "a3"]);
}

/// Let go while another of its object runs, it goes next, before the one that has failed.
async fn a_released_delivery_waits_for_the_one_in_flight(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    let receipts = send(&bed, route, &["a1", "a2"]).await;
    let head = bed.claim(&route, 10).await.claimed.remove(0);
    bed.store.release(route.of(receipts[1]), &act("urgent")).await.unwrap();
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(bed.states(&route).await, ["a1 processing", "a2 held:order"]);
    assert!(bed.finish(&head, Next::Retry(600 * SECOND)).await);
    bed.store.release_unblocked(10).await.unwrap();
    assert_eq!(bed.work_off(&route).await, ["a2"]);
}

async fn an_older_version_is_skipped_at_the_claim(mut bed: Bed) {
    let route = bed.route("billing", fresh_only()).await;
    send(&bed, route, &["a5"]).await;
    assert_eq!(bed.work_off(&route).await, ["a5"]);
    bed.reopen().await;
    let receipts = send(&bed, route, &["a4", "b1"]).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!(claims.claimed.len(), 1);
    assert_eq!(claims.claimed[0].event_id, "b1");
    assert_eq!(claims.skipped, [(route.of(receipts[0]), Reason::Stale)]);
    let row = bed.delivery(route.of(receipts[0])).await;
    assert_eq!((row.state, row.reason), (State::Skipped, Some(Reason::Stale)));
    assert_eq!(row.counts.attempts, 0);
    assert!(row.finished_at.is_some());
    assert!(bed.store.attempts(receipts[0]).await.unwrap().is_empty());
}

async fn an_equal_version_passes(bed: Bed) {
    let route = bed.route("billing", fresh_only()).await;
    send(&bed, route, &["a5"]).await;
    bed.work_off(&route).await;
    send(&bed, route, &["a5-again", "a6"]).await;
    assert_eq!(bed.work_off(&route).await, ["a5-again", "a6"]);
}

async fn an_unversioned_event_is_delivered(bed: Bed) {
    let route = bed.route("billing", fresh_only()).await;
    send(&bed, route, &["a5"]).await;
    bed.work_off(&route).await;
    let unversioned = about(&bed, route, "a-none", "a", 0);
    bed.send(Arrival { version: None, ..unversioned }).await;
    assert_eq!(bed.work_off(&route).await, ["a-none"]);
    // And it moves nothing.
    send(&bed, route, &["a4", "a5-again"]).await;
    assert_eq!(bed.work_off(&route).await, ["a5-again"]);
}

async fn only_processed_moves_the_watermark(bed: Bed) {
    let route = bed.route("billing", fresh_only()).await;
    for (version, next) in
        [(9, Next::Stale), (8, Next::Dead), (7, Next::Retry(600 * SECOND)), (6, Next::Return)]
    {
        send(&bed, route, &[&format!("a{version}")]).await;
        let claimed = bed.take(&route).await;
        assert_eq!(claimed.version, Some(version));
        assert!(bed.finish(&claimed, next).await);
    }
    send(&bed, route, &["a1"]).await;
    assert_eq!(bed.work_off(&route).await, ["a6"]);
    let states = ["a9 skipped:stale", "a8 dead", "a7 retrying", "a6 processed", "a1 skipped:stale"];
    assert_eq!(bed.states(&route).await, states);
}

async fn watermarks_are_per_route_source_and_object(bed: Bed) {
    let route = bed.route("billing", fresh_only()).await;
    let other = bed.route("other", fresh_only()).await;
    send(&bed, route, &["a5"]).await;
    bed.work_off(&route).await;
    let source = bed.store.register_source("stripe-test", None).await.unwrap();
    bed.send(Arrival { source, ..about(&bed, route, "a1-test", "a", 1) }).await;
    bed.send(about(&bed, other, "a1-other", "a", 1)).await;
    bed.send(about(&bed, route, "b1", "b", 1)).await;
    bed.send(about(&bed, route, "A1", "A", 1)).await;
    bed.send(about(&bed, route, "a1", "a", 1)).await;
    assert_eq!(bed.work_off(&route).await, ["a1-test", "b1", "A1"]);
    assert_eq!(bed.work_off(&other).await, ["a1-other"]);
}

async fn a_stale_guard_has_one_in_flight(bed: Bed) {
    let route = bed.route("billing", fresh_only()).await;
    send(&bed, route, &["a2", "a1"]).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!(claims.claimed.len(), 1);
    assert_eq!(claims.held.len(), 1);
    send(&bed, route, &["a9"]).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    assert!(bed.finish(&claims.claimed[0], Next::Processed).await);
    assert_eq!(bed.work_off(&route).await.len(), 2);
}

/// The newer one runs while the older one pauses, which is stale then.
async fn a_guard_without_order_waits_for_no_retry(bed: Bed) {
    let route = bed.route("billing", fresh_only()).await;
    send(&bed, route, &["a1", "a2"]).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!(claims.claimed[0].event_id, "a1");
    assert!(bed.finish(&claims.claimed[0], Next::Retry(60 * SECOND)).await);
    assert_eq!(bed.work_off(&route).await, ["a2"]);
    bed.pass(60);
    assert_eq!(bed.work_off(&route).await, Vec::<String>::new());
    assert_eq!(bed.states(&route).await, ["a1 skipped:stale", "a2 processed"]);
    // Nor for what is dead.
    send(&bed, route, &["a3", "a4"]).await;
    bed.kill(&route).await;
    assert_eq!(bed.work_off(&route).await, ["a4"]);
}

async fn events_about_nothing_are_not_held(bed: Bed) {
    let route = bed.route("billing", RouteRules { skip_stale: true, ..in_order() }).await;
    bed.record(["e1", "e2", "e3"].map(|id| bed.event(id, &[route])).into()).await;
    let claims = bed.claim(&route, 10).await;
    assert_eq!((claims.claimed.len(), claims.held.len()), (3, 0));
}

async fn a_change_of_rules_lets_go(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, &["a1", "a2", "a3"]).await;
    let head = bed.claim(&route, 10).await.claimed.remove(0);
    assert!(bed.finish(&head, Next::Dead).await);
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 0);

    let goes_on = RouteRules { on_dead: OnDead::Continue, ..in_order() };
    let route = bed.route("billing", goes_on).await;
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 1);
    let two = bed.take(&route).await;
    assert_eq!(two.event_id, "a2");

    let route = bed.route("billing", RouteRules::default()).await;
    assert_eq!(bed.store.release_unblocked(10).await.unwrap().released, 1);
    assert_eq!(bed.take(&route).await.event_id, "a3");
    assert!(bed.finish(&two, Next::Processed).await);
}

/// A command of an operator opens the same store; the server's next claim has what it let go.
async fn operators_act_beside_the_server(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    let receipts = send(&bed, route, &["a1", "a2", "a3"]).await;
    let dead = bed.kill(&route).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    let desk = store::open(&bed.url, Purpose::Operate).await.unwrap();
    let released = desk.release(route.of(receipts[2]), &act("urgent")).await.unwrap();
    assert_eq!(released, Acted::Done);
    assert_eq!(bed.take(&route).await.event_id, "a3");
    assert_eq!(desk.discard(dead, &act("lost cause")).await.unwrap(), Acted::Done);
    desk.close().await;
    // It waits for the one in flight, whoever let that go.
    assert_eq!(bed.take_if_any(&route).await, None);
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().retrying.len(), 1);
    assert_eq!(bed.work_off(&route).await.len(), 2);
    assert_eq!(bed.rows("deliveries"), 0);
}

/// Four workers, eight objects, ten versions each, every third attempt failing: nothing is out of
/// order, nothing of one object runs at the same time, and nothing is forgotten in its hold.
async fn workers_racing_keep_the_order(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    for version in 0..10 {
        let batch = ('a'..='h').map(|object| {
            about(&bed, route, &format!("{object}{version}"), &object.to_string(), version)
        });
        bed.record(batch.collect()).await;
    }
    let running: Arc<Mutex<HashMap<String, i64>>> = Arc::default();
    let bed = Arc::new(bed);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..4 {
        let (bed, running) = (bed.clone(), running.clone());
        workers.spawn(async move {
            let mut turn = worker;
            while bed.rows("deliveries") > 0 {
                for claimed in bed.claim(&route, 3).await.claimed {
                    let object = claimed.object.clone().unwrap();
                    let expected = {
                        let mut running = running.lock().unwrap();
                        // Negative while one is in flight.
                        let next = running.entry(object.clone()).or_default();
                        let expected = *next;
                        *next = -1;
                        expected
                    };
                    assert_eq!(claimed.version, Some(expected), "{object}");
                    turn += 1;
                    let failed = turn % 3 == 0;
                    let next = if failed { Next::Retry(Duration::ZERO) } else { Next::Processed };
                    let goes_on = expected + i64::from(!failed);
                    running.lock().unwrap().insert(object, goes_on);
                    assert!(bed.finish(&claimed, next).await);
                }
            }
        });
    }
    workers.join_all().await;
    assert_eq!(bed.rows("finished"), 80);
}
