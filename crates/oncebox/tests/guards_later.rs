//! Guards that come later than the deliveries they are for: rules that change, and replays.

use std::time::Duration;

use oncebox::delivery::{DeliveryId, Next, Reason};
use oncebox::limits;
use oncebox::receipt::{Arrival, ReceiptId, Taker};
use oncebox::replay::{How, Reopened, Replay, ReplayFilter, ReplayStep, RoutePlan, plan};
use oncebox::route::RouteRules;
use oncebox::store::{Acted, Finish, Pick, Wanted};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, NOON, Route, act, time};

for_each_store!(
    a_guard_turned_on_holds_for_what_is_open,
    a_guard_turned_on_for_a_large_backlog_is_filled_in_steps,
    a_guard_turned_off_again_ends_the_filling,
    a_route_that_is_filled_gives_no_probe,
    a_route_that_gives_nothing_tells_of_no_suspects,
    a_guard_turned_on_leaves_out_what_is_held_as_odd,
    what_the_rules_before_took_gets_its_object,
    a_guard_turned_on_holds_for_what_is_under_a_lease,
    a_guard_turned_on_holds_for_what_is_dead,
    a_guard_turned_on_holds_for_what_is_replayed,
    rules_that_stay_change_nothing,
    a_released_delivery_that_is_replayed_waits_again,
    an_older_one_processed_later_is_not_what_is_remembered,
    of_one_batch_the_newest_is_remembered,
    a_plan_tells_what_would_be_repeated,
);

const SECOND: Duration = Duration::from_secs(1);
const WINDOW: i64 = 300;

fn in_order() -> RouteRules {
    RouteRules { ordered: true, ..RouteRules::default() }
}

fn fresh_only() -> RouteRules {
    RouteRules { skip_stale: true, ..RouteRules::default() }
}

fn once_per_window() -> RouteRules {
    let window = Duration::from_secs(WINDOW.unsigned_abs());
    RouteRules { same_operation: Some(window), ..RouteRules::default() }
}

async fn send(bed: &Bed, route: Route, event_id: &str, version: i64) -> ReceiptId {
    let (object, version) = (Some("a".to_owned()), Some(version));
    bed.send(Arrival { object, version, ..bed.event(event_id, &[route]) }).await
}

/// Records an event of one operation, received that many seconds after noon.
async fn send_same(bed: &Bed, route: Route, event_id: &str, after: i64) -> ReceiptId {
    let takers = vec![Taker { operation: Some([7; 16]), ..route.taker() }];
    let arrival = bed.arrival_at(event_id, &format!("{{{event_id}}}"), time(NOON + after));
    bed.send(Arrival { object: None, version: None, takers, ..arrival }).await
}

/// Records a backlog that takes three steps: of each object two events, the newer one first.
async fn backlog(bed: &Bed, route: Route) -> usize {
    let count = limits::FILL_ROWS * 2 + 100;
    let events: Vec<_> = (0..count)
        .map(|n| {
            let (object, version) = (format!("o{}", n / 2), Some(if n % 2 == 0 { 2 } else { 1 }));
            Arrival { object: Some(object), version, ..bed.event(&format!("e{n}"), &[route]) }
        })
        .collect();
    for some in events.chunks(250) {
        bed.record(some.to_vec()).await;
    }
    count
}

/// The change of rules does not wait for the backlog; claims do, and then keep the order of all.
async fn a_guard_turned_on_for_a_large_backlog_is_filled_in_steps(mut bed: Bed) {
    let plain = bed.route("billing", RouteRules::default()).await;
    let count = backlog(&bed, plain).await;
    let route = bed.route("billing", in_order()).await;
    let unlaned = "SELECT count(*) FROM deliveries WHERE lane IS NULL";
    let left: usize = bed.query(unlaned).parse().unwrap();
    assert_eq!(left, count - limits::FILL_ROWS, "one step was done at once");
    assert!(bed.claim(&route, 10).await.claimed.is_empty(), "another may come first");
    let filling = async |bed: &Bed| bed.store.routes().await.unwrap()[0].filling;
    assert!(filling(&bed).await, "operators see why");

    // A process that dies in between leaves it to the next.
    assert!(bed.store.fill_lanes().await.unwrap());
    bed.crash().await;
    assert!(bed.claim(&route, 10).await.claimed.is_empty());
    while bed.store.fill_lanes().await.unwrap() {}
    assert_eq!(bed.query(unlaned), "0");
    assert!(!filling(&bed).await);
    let claimed = bed.take(&route).await;
    assert_eq!(claimed.version, Some(1), "the older one of its object is first: {claimed:?}");
}

async fn a_guard_turned_off_again_ends_the_filling(bed: Bed) {
    let plain = bed.route("billing", RouteRules::default()).await;
    backlog(&bed, plain).await;
    bed.route("billing", in_order()).await;
    bed.route("billing", RouteRules::default()).await;
    assert!(!bed.store.fill_lanes().await.unwrap());
    assert_eq!(bed.claim(&plain, 10).await.claimed.len(), 10);
}

/// A breaker that is not closed picks what it claims; it waits for the filling all the same.
async fn a_route_that_is_filled_gives_no_probe(bed: Bed) {
    let plain = bed.route("billing", RouteRules::default()).await;
    backlog(&bed, plain).await;
    let route = bed.route("billing", in_order()).await;
    for pick in [Pick::UnfailedFirst, Pick::OnlyUnfailed] {
        let claims = bed.claim_many(vec![Wanted { pick, ..route.wanted(10) }]).await;
        assert_eq!(claims.claimed, [], "another may come first");
    }
}

/// Workers that are told of suspects claim again at once.
async fn a_route_that_gives_nothing_tells_of_no_suspects(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    send(&bed, route, "a1", 1).await;
    bed.take(&route).await;
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().retrying.len(), 1);
    assert!(bed.store.pause_route("billing", true, &act("moving")).await.unwrap());
    assert_eq!(bed.claim(&route, 10).await.alone, []);
    assert!(bed.store.pause_route("billing", false, &act("moved")).await.unwrap());
    assert_eq!(bed.claim(&route, 10).await.alone, [route.no]);
}

/// What is held as twin or conflict stands outside lanes, until an operator releases it.
async fn a_guard_turned_on_leaves_out_what_is_held_as_odd(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let about = |id: &str, body: &str, version| {
        let arrival = bed.with_body(bed.event(id, &[route]), body);
        Arrival { object: Some("a".to_owned()), version: Some(version), ..arrival }
    };
    bed.send(about("a1", "one", 1)).await;
    let odd = about("a1", "other", 1);
    let held = route.of(odd.receipt);
    bed.record(vec![odd]).await;
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, "a2", 2).await;
    assert_eq!(bed.work_off(&route).await, ["a1", "a2"]);
    assert_eq!(bed.states(&route).await[1], "a1 held:conflict");

    send(&bed, route, "a3", 3).await;
    let running = bed.take(&route).await;
    assert_eq!(bed.store.release(held, &act("right")).await.unwrap(), Acted::Done);
    assert_eq!(bed.take_if_any(&route).await, None, "another of its object is under way");
    assert!(bed.finish(&running, Next::Processed).await);
    assert_eq!(bed.take(&route).await.delivery, held);
}

/// An arrival was queued, or came to a node that has not reloaded, while the rules changed.
async fn what_the_rules_before_took_gets_its_object(bed: Bed) {
    let plain = bed.route("billing", RouteRules::default()).await;
    let route = bed.route("billing", in_order()).await;
    send(&bed, plain, "a2", 2).await;
    send(&bed, route, "a1", 1).await;
    assert_eq!(bed.work_off(&route).await, ["a1", "a2"]);
    let both = bed.request(&[("b1", "{}"), ("b2", "{}")]).into_iter().map(|arrival| {
        let (object, version) = (Some("b".to_owned()), Some(1));
        Arrival { object, version, takers: vec![plain.taker()], ..arrival }
    });
    bed.record(both.collect()).await;
    assert_eq!(bed.claim(&route, 10).await.claimed.len(), 1, "one of an object at a time");
}

async fn replay(bed: &Bed, deliveries: &[DeliveryId], how: How) -> Vec<Reopened> {
    let job = Replay::new(ReplayFilter::default(), how, 0, &act("again"));
    bed.store.create_replay(&job, &act("again")).await.unwrap();
    let job = bed.store.take_replay(Some(job.id), LEASE).await.unwrap().expect("taken");
    let open = deliveries.iter().map(|delivery| (*delivery, false)).collect();
    let (id, lease, cursor) = (job.id, job.lease, deliveries.last().copied());
    let step = ReplayStep { id, lease, open, passed: 0, cursor, done: true, how };
    bed.store.step_replay(&step).await.unwrap().expect("the lease is ours")
}

async fn a_guard_turned_on_holds_for_what_is_open(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let other = bed.route("other", RouteRules::default()).await;
    send(&bed, route, "a2", 2).await;
    send(&bed, other, "b2", 2).await;
    bed.due("about nothing", &[route]).await;
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, "a1", 1).await;
    let claims = bed.claim(&route, 10).await;
    let ids: Vec<_> = claims.claimed.iter().map(|claimed| claimed.event_id.as_str()).collect();
    assert_eq!(ids, ["about nothing", "a1"]);
    assert_eq!(bed.take_all(&other).await.len(), 1);
    assert!(bed.finish(&claims.claimed[1], Next::Processed).await);
    assert_eq!(bed.work_off(&route).await, ["a2"]);
    assert_eq!(bed.query("SELECT count(*) FROM deliveries WHERE lane IS NOT NULL"), "0");
}

/// It was claimed without a guard. Its end moves the watermark and lets go what waits all the same.
async fn a_guard_turned_on_holds_for_what_is_under_a_lease(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    send(&bed, route, "a5", 5).await;
    let first = bed.take(&route).await;
    assert!(!first.guarded);
    let both = RouteRules { skip_stale: true, ..in_order() };
    let route = bed.route("billing", both).await;
    send(&bed, route, "a6", 6).await;
    let stale = send(&bed, route, "a4", 4).await;
    assert_eq!(bed.claim(&route, 10).await.held.len(), 2);
    assert!(bed.finish(&first, Next::Processed).await);
    let claims = bed.claim(&route, 10).await;
    assert_eq!(claims.skipped, [(route.of(stale), Reason::Stale)]);
    assert_eq!(bed.work_off(&route).await, ["a6"]);
}

async fn a_guard_turned_on_holds_for_what_is_dead(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let dead = send(&bed, route, "a5", 5).await;
    bed.kill(&route).await;
    let route = bed.route("billing", fresh_only()).await;
    send(&bed, route, "a10", 10).await;
    assert_eq!(bed.work_off(&route).await, ["a10"]);

    let all = ReplayFilter::default();
    let planned = plan(&*bed.store, &all, How::default()).await.unwrap();
    assert_eq!(planned.routes[&route.no].stale, 1);
    assert_eq!(replay(&bed, &[route.of(dead)], How::default()).await, [Reopened::Opened]);
    assert_eq!(bed.claim(&route, 10).await.skipped, [(route.of(dead), Reason::Stale)]);
}

/// What was finished before there were guards comes back under them.
async fn a_guard_turned_on_holds_for_what_is_replayed(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let done = send(&bed, route, "a5", 5).await;
    assert_eq!(bed.work_off(&route).await, ["a5"]);
    let route = bed.route("billing", fresh_only()).await;
    send(&bed, route, "a10", 10).await;
    assert_eq!(bed.work_off(&route).await, ["a10"]);

    let forced = How { force: true, ..How::default() };
    let planned = plan(&*bed.store, &ReplayFilter::default(), forced).await.unwrap();
    assert_eq!(planned.routes[&route.no].stale, 1);
    assert_eq!(replay(&bed, &[route.of(done)], forced).await, [Reopened::Opened]);
    assert_eq!(bed.claim(&route, 10).await.skipped, [(route.of(done), Reason::Stale)]);
}

/// A node that starts with the rules there are does not go through everything that is open.
async fn rules_that_stay_change_nothing(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, "a1", 1).await;
    bed.query("UPDATE deliveries SET lane = NULL");
    bed.route("billing", in_order()).await;
    assert_eq!(bed.query("SELECT count(*) FROM deliveries WHERE lane IS NOT NULL"), "0");
    bed.route("billing", fresh_only()).await;
    assert_eq!(bed.query("SELECT lane FROM deliveries"), "a");
}

async fn a_released_delivery_that_is_replayed_waits_again(bed: Bed) {
    let route = bed.route("billing", in_order()).await;
    send(&bed, route, "a1", 1).await;
    let second = route.of(send(&bed, route, "a2", 2).await);
    let first = bed.claim(&route, 10).await.claimed.remove(0);
    assert!(bed.finish(&first, Next::Retry(60 * SECOND)).await);
    assert_eq!(bed.store.release(second, &act("urgent")).await.unwrap(), Acted::Done);
    assert_eq!(bed.kill(&route).await, second);
    assert_eq!(replay(&bed, &[second], How::default()).await, [Reopened::Opened]);
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(bed.states(&route).await, ["a1 retrying", "a2 held:order"]);
}

async fn an_older_one_processed_later_is_not_what_is_remembered(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send_same(&bed, route, "e1", 0).await;
    let late = bed.take(&route).await;
    assert!(bed.finish(&late, Next::Retry(60 * SECOND)).await);
    let held = send_same(&bed, route, "e2", 10).await;
    let newest = send_same(&bed, route, "e3", 2 * WINDOW).await;
    assert_eq!(bed.work_off(&route).await, ["e3"]);
    bed.pass(60);
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    let repeated = send_same(&bed, route, "e4", 2 * WINDOW + 60).await;
    assert_eq!(bed.work_off(&route).await, Vec::<String>::new());
    assert_eq!(bed.delivery(route.of(repeated)).await.first, Some(newest));
    // What waited for the older one is a repetition of that, not of the newest.
    let first = Some(late.delivery.receipt);
    assert_eq!(bed.delivery(route.of(held)).await.first, first);
}

async fn of_one_batch_the_newest_is_remembered(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    send_same(&bed, route, "e1", 0).await;
    let newest = send_same(&bed, route, "e2", 2 * WINDOW).await;
    let both = bed.claim(&route, 10).await.claimed;
    let end = |n: usize| oncebox_testkit::store::ending(&both[n], Next::Processed);
    assert_eq!(bed.store.finish(vec![end(1), end(0)]).await.unwrap(), [Finish::Done; 2]);
    let repeated = send_same(&bed, route, "e3", 2 * WINDOW + 1).await;
    assert_eq!(bed.work_off(&route).await, Vec::<String>::new());
    assert_eq!(bed.delivery(route.of(repeated)).await.first, Some(newest));
}

async fn a_plan_tells_what_would_be_repeated(bed: Bed) {
    let route = bed.route("billing", once_per_window()).await;
    let first = send_same(&bed, route, "e1", 0).await;
    send_same(&bed, route, "e2", 1).await;
    send_same(&bed, route, "beyond", WINDOW + 1).await;
    let beyond = bed.take(&route).await;
    assert_eq!(beyond.delivery.receipt, first);
    assert!(bed.finish(&beyond, Next::Processed).await);
    bed.kill(&route).await;
    let planned = async |how| {
        let all = ReplayFilter::default();
        plan(&*bed.store, &all, how).await.unwrap().routes.remove(&route.no).unwrap()
    };
    let RoutePlan { opens, repeated, processed, .. } = planned(How::default()).await;
    assert_eq!((opens, repeated, processed), (1, 1, 1));
    // What was processed is not a repetition of itself, and an operator may pass the guard.
    let RoutePlan { opens, repeated, .. } = planned(How { force: true, ..How::default() }).await;
    assert_eq!((opens, repeated), (2, 1));
    let passing = How { ignore_stale: true, ..How::default() };
    let RoutePlan { opens, repeated, .. } = planned(passing).await;
    assert_eq!((opens, repeated), (2, 0));
}
