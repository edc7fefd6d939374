//! Replays: what is opened again, how it comes back, and what is left alone.

use std::time::Duration;

use oncebox::delivery::{Counts, DeliveryId, Next, Reason, State};
use oncebox::receipt::{Arrival, ReceiptId, Taker};
use oncebox::replay::{Fill, How, Reopened, Replay, ReplayFilter, ReplayStep};
use oncebox::route::RouteRules;
use oncebox::store::{ReceiptFilter, ReplayCandidate};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, NOON, Route, act, time};

for_each_store!(
    a_dead_delivery_gets_a_fresh_budget,
    a_discarded_delivery_comes_back,
    what_was_processed_needs_force,
    a_processed_event_is_replayed_three_times,
    what_is_open_is_left_alone,
    a_held_delivery_is_judged_again,
    a_dead_head_goes_back_to_its_place,
    a_forced_head_goes_back_to_its_place,
    the_stale_guard_is_applied_again,
    a_replay_may_pass_the_stale_guard,
    a_repeated_operation_is_still_one,
    a_lost_delivery_starts_afresh,
    a_route_added_later_is_filled,
    a_filled_route_keeps_its_order,
    what_has_expired_is_gone,
    pages_come_in_order,
    pages_show_what_the_filter_says,
    pages_show_what_would_be_stale,
);

const FORCE: How = How { force: true, ignore_stale: false };
const PASS_STALE: How = How { force: false, ignore_stale: true };

/// Replays everything of some receipts.
async fn replay_receipts(bed: &Bed, receipts: &[ReceiptId], how: How) -> Vec<Reopened> {
    bed.replay(ReplayFilter { receipts: receipts.to_vec(), ..Default::default() }, how).await
}

/// Number, outcome and replay of every attempt: `1 dead, 0`.
async fn attempts(bed: &Bed, receipt: ReceiptId) -> Vec<String> {
    let attempts = bed.store.attempts(receipt).await.unwrap();
    attempts.iter().map(|a| format!("{} {}, {}", a.number, a.outcome, a.replays)).collect()
}

fn about(bed: &Bed, route: Route, event_id: &str, version: i64) -> Arrival {
    Arrival { object: Some("a".into()), version: Some(version), ..bed.event(event_id, &[route]) }
}

async fn plain(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

async fn a_dead_delivery_gets_a_fresh_budget(mut bed: Bed) {
    let route = plain(&bed).await;
    let receipt = bed.due("e1", &[route]).await;
    let first = bed.take(&route).await;
    assert!(bed.finish(&first, Next::Retry(Duration::ZERO)).await);
    let second = bed.take(&route).await;
    assert!(bed.finish(&second, Next::Dead).await);
    assert_eq!(replay_receipts(&bed, &[receipt], How::default()).await, [Reopened::Opened]);
    bed.reopen().await;

    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!((row.state, row.counts, row.replays), (State::Received, Counts::default(), 1));
    let again = bed.take(&route).await;
    assert_eq!((again.counts.attempts, again.replays), (1, 1));
    assert_eq!(again.key, first.key);
    assert!(again.lease > second.lease);
    assert!(!bed.finish(&second, Next::Processed).await);
    assert!(bed.finish(&again, Next::Processed).await);
    assert_eq!(attempts(&bed, receipt).await, ["1 retry, 0", "2 dead, 0", "1 processed, 1"]);
}

async fn a_discarded_delivery_comes_back(bed: Bed) {
    let route = plain(&bed).await;
    let receipt = bed.due("e1", &[route]).await;
    let dead = bed.kill(&route).await;
    bed.store.discard(dead, &act("lost cause")).await.unwrap();
    assert_eq!(replay_receipts(&bed, &[receipt], How::default()).await, [Reopened::Opened]);
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!((row.state, row.replays, row.counts.attempts), (State::Processed, 1, 1));
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1));
}

async fn what_was_processed_needs_force(bed: Bed) {
    let route = plain(&bed).await;
    let receipt = bed.due("e1", &[route]).await;
    bed.work_off(&route).await;
    let left = replay_receipts(&bed, &[receipt], How::default()).await;
    assert_eq!(left, [Reopened::Left(State::Processed)]);
    assert_eq!(bed.states(&route).await, ["e1 processed"]);
    assert_eq!(bed.delivery(route.of(receipt)).await.replays, 0);

    assert_eq!(replay_receipts(&bed, &[receipt], FORCE).await, [Reopened::Opened]);
    assert_eq!(bed.states(&route).await, ["e1 received"]);
    assert_eq!(attempts(&bed, receipt).await, ["1 processed, 0"]);
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    assert_eq!(attempts(&bed, receipt).await, ["1 processed, 0", "1 processed, 1"]);
}

async fn a_processed_event_is_replayed_three_times(bed: Bed) {
    let route = plain(&bed).await;
    let receipt = bed.due("e1", &[route]).await;
    let mut claims = vec![bed.take(&route).await];
    assert!(bed.finish(&claims[0], Next::Processed).await);
    for time in 1..=3 {
        assert_eq!(replay_receipts(&bed, &[receipt], FORCE).await, [Reopened::Opened]);
        let again = bed.take(&route).await;
        assert_eq!((again.replays, again.counts.attempts), (time, 1));
        assert!(bed.finish(&again, Next::Processed).await);
        claims.push(again);
    }
    assert!(claims.windows(2).all(|pair| pair[0].key == pair[1].key));
    assert!(claims.windows(2).all(|pair| pair[0].lease < pair[1].lease));
    assert_eq!(attempts(&bed, receipt).await.len(), 4);
}

async fn what_is_open_is_left_alone(bed: Bed) {
    let route = plain(&bed).await;
    let mut receipts = vec![bed.due("retrying", &[route]).await];
    let retrying = bed.take(&route).await;
    assert!(bed.finish(&retrying, Next::Retry(LEASE)).await);
    receipts.push(bed.due("processing", &[route]).await);
    let processing = bed.take(&route).await;
    receipts.push(bed.due("received", &[route]).await);
    let left = replay_receipts(&bed, &receipts, FORCE).await;
    let states = [State::Retrying, State::Processing, State::Received];
    assert_eq!(left, states.map(Reopened::Left));
    assert!(bed.finish(&processing, Next::Processed).await);
    assert_eq!(bed.query("SELECT sum(replays) FROM deliveries"), "0");
}

async fn a_held_delivery_is_judged_again(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    bed.send(about(&bed, route, "a1", 1)).await;
    let held = bed.send(about(&bed, route, "a2", 2)).await;
    bed.kill(&route).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(replay_receipts(&bed, &[held], How::default()).await, [Reopened::Opened]);
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(bed.states(&route).await, ["a1 dead", "a2 held:order"]);
}

async fn a_dead_head_goes_back_to_its_place(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let head = bed.send(about(&bed, route, "a1", 1)).await;
    bed.send(about(&bed, route, "a2", 2)).await;
    bed.send(about(&bed, route, "a3", 3)).await;
    bed.kill(&route).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(replay_receipts(&bed, &[head], How::default()).await, [Reopened::Opened]);
    assert_eq!(bed.work_off(&route).await, ["a1", "a2", "a3"]);
}

/// From among the finished: it has to find its object and version again.
async fn a_forced_head_goes_back_to_its_place(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let head = bed.send(about(&bed, route, "a1", 1)).await;
    bed.work_off(&route).await;
    bed.send(about(&bed, route, "a2", 2)).await;
    assert_eq!(replay_receipts(&bed, &[head], FORCE).await, [Reopened::Opened]);
    let first = bed.take(&route).await;
    assert_eq!(first.event_id, "a1");
    assert!(first.guarded);
    assert_eq!(bed.take_if_any(&route).await, None);
    assert!(bed.finish(&first, Next::Processed).await);
    assert_eq!(bed.work_off(&route).await, ["a2"]);
}

async fn the_stale_guard_is_applied_again(bed: Bed) {
    let rules = RouteRules { skip_stale: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    bed.send(about(&bed, route, "a5", 5)).await;
    bed.work_off(&route).await;
    let stale = bed.send(about(&bed, route, "a4", 4)).await;
    assert_eq!(bed.claim(&route, 5).await.skipped.len(), 1);
    assert_eq!(replay_receipts(&bed, &[stale], How::default()).await, [Reopened::Opened]);
    let claims = bed.claim(&route, 5).await;
    assert_eq!(claims.skipped, [(route.of(stale), Reason::Stale)]);
    assert!(claims.claimed.is_empty());
    assert_eq!(bed.delivery(route.of(stale)).await.replays, 1);
    assert!(attempts(&bed, stale).await.is_empty());
}

/// It runs, and the watermark stays where it was.
async fn a_replay_may_pass_the_stale_guard(bed: Bed) {
    let rules = RouteRules { skip_stale: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    bed.send(about(&bed, route, "a5", 5)).await;
    bed.work_off(&route).await;
    let stale = bed.send(about(&bed, route, "a3", 3)).await;
    bed.claim(&route, 5).await;
    assert_eq!(replay_receipts(&bed, &[stale], PASS_STALE).await, [Reopened::Opened]);
    assert_eq!(bed.work_off(&route).await, ["a3"]);
    bed.send(about(&bed, route, "a4", 4)).await;
    assert_eq!(bed.claim(&route, 5).await.skipped.len(), 1);
    // Passing is for one replay, not for ever.
    assert_eq!(replay_receipts(&bed, &[stale], FORCE).await, [Reopened::Opened]);
    assert_eq!(bed.claim(&route, 5).await.skipped, [(route.of(stale), Reason::Stale)]);
}

async fn a_repeated_operation_is_still_one(bed: Bed) {
    let rules = RouteRules { same_operation: Some(LEASE), ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let taker = Taker { operation: Some([7; 16]), ..route.taker() };
    let event = |id| Arrival { takers: vec![taker], ..bed.event(id, &[route]) };
    let first = bed.send(event("e1")).await;
    let second = bed.send(event("e2")).await;
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    assert_eq!(replay_receipts(&bed, &[second], How::default()).await, [Reopened::Opened]);
    let claims = bed.claim(&route, 5).await;
    assert_eq!(claims.skipped, [(route.of(second), Reason::SameOperation)]);
    // The first is not a repetition of itself.
    assert_eq!(replay_receipts(&bed, &[first], FORCE).await, [Reopened::Opened]);
    assert_eq!(bed.work_off(&route).await, ["e1"]);
    assert_eq!(replay_receipts(&bed, &[second], PASS_STALE).await, [Reopened::Opened]);
    assert_eq!(bed.work_off(&route).await, ["e2"]);
}

/// A poison event that was mended is claimed among others again.
async fn a_lost_delivery_starts_afresh(bed: Bed) {
    let rules = RouteRules { max_attempts: 1, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let receipt = bed.due("e1", &[route]).await;
    bed.take(&route).await;
    bed.pass(61);
    assert_eq!(bed.store.rescue(5).await.unwrap().dead.len(), 1);
    bed.due("e2", &[route]).await;
    assert_eq!(replay_receipts(&bed, &[receipt], How::default()).await, [Reopened::Opened]);
    assert_eq!(bed.claim(&route, 5).await.claimed.len(), 2);
}

fn filling(bed: &Bed, route: Route) -> ReplayFilter {
    let fill = Fill { route: route.no, source: bed.source, event_type: "*".into() };
    ReplayFilter { routes: vec![route.no], fill: vec![fill], ..Default::default() }
}

async fn a_route_added_later_is_filled(bed: Bed) {
    let old = plain(&bed).await;
    let unrouted = bed.due("e1", &[]).await;
    let taken = bed.due("e2", &[old]).await;
    let new = bed.route("new", RouteRules::default()).await;
    let both = bed.due("e3", &[old, new]).await;
    bed.work_off(&new).await;

    let filter = filling(&bed, new);
    let page = bed.store.replay_page(&filter, None, 10).await.unwrap();
    let page: Vec<_> = page.iter().map(|found| (found.delivery, found.state)).collect();
    let of = |receipt| new.of(receipt);
    let found = [(of(unrouted), None), (of(taken), None), (of(both), Some(State::Processed))];
    assert_eq!(page, found);
    let only = ReplayFilter { unrouted: true, ..filter.clone() };
    let page = bed.store.replay_page(&only, None, 10).await.unwrap();
    assert_eq!(page.iter().map(|found| found.delivery).collect::<Vec<_>>(), [of(unrouted)]);

    let outcome = bed.replay(filter.clone(), How::default()).await;
    let expected = [Reopened::Opened, Reopened::Opened, Reopened::Left(State::Processed)];
    assert_eq!(outcome, expected);
    assert_eq!(bed.work_off(&new).await, ["e1", "e2"]);
    let unrouted = ReceiptFilter { unrouted: true, limit: 10, ..Default::default() };
    assert!(bed.store.receipts(&unrouted).await.unwrap().is_empty());
    assert_eq!(bed.states(&old).await, ["e2 received", "e3 received"]);
    // Filled once, there is nothing left that the route never took.
    let page = bed.store.replay_page(&filter, None, 10).await.unwrap();
    assert!(page.iter().all(|found| found.state == Some(State::Processed)));
    let again = bed.replay(filter, How::default()).await;
    assert_eq!(again, [Reopened::Left(State::Processed); 3]);
}

async fn a_filled_route_keeps_its_order(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    for (id, version) in [("a3", 3), ("a1", 1), ("a2", 2)] {
        bed.send(Arrival { takers: Vec::new(), ..about(&bed, route, id, version) }).await;
    }
    let opened = bed.replay(filling(&bed, route), How::default()).await;
    assert_eq!(opened, [Reopened::Opened; 3]);
    assert_eq!(bed.work_off(&route).await, ["a1", "a2", "a3"]);
}

async fn what_has_expired_is_gone(bed: Bed) {
    let route = plain(&bed).await;
    let gone = bed.arrival("gone", "{}").receipt;
    let job = Replay::new(ReplayFilter::default(), How::default(), 2, &act(""));
    bed.store.create_replay(&job, &act("")).await.unwrap();
    let job = bed.store.take_replay(Some(job.id), LEASE).await.unwrap().unwrap();
    let step = ReplayStep {
        id: job.id,
        lease: job.lease,
        open: vec![(route.of(gone), false)],
        passed: 0,
        cursor: None,
        done: false,
        how: job.how,
    };
    let outcome = bed.store.step_replay(&step).await.unwrap();
    assert_eq!(outcome, Some(vec![Reopened::Gone]));
    let fill = ReplayStep { open: vec![(route.of(gone), true)], done: true, ..step };
    assert_eq!(bed.store.step_replay(&fill).await.unwrap(), Some(vec![Reopened::Gone]));
    assert_eq!(bed.rows("deliveries"), 0);
    assert_eq!(bed.store.replay(job.id).await.unwrap().unwrap().passed, 2);
}

/// By receipt and route, open and finished mixed, whatever the size of the page.
async fn pages_come_in_order(bed: Bed) {
    let routes = [plain(&bed).await, bed.route("other", RouteRules::default()).await];
    let mut all = Vec::new();
    for n in 0..6 {
        let receipt = bed.due(&format!("e{n}"), &routes).await;
        all.extend(routes.map(|route| route.of(receipt)));
        if n % 2 == 0 {
            bed.work_off(&routes[n / 2 % 2]).await;
        }
    }
    all.sort();
    for limit in [1, 2, 5, 100] {
        let mut found: Vec<DeliveryId> = Vec::new();
        loop {
            let filter = ReplayFilter::default();
            let page = bed.store.replay_page(&filter, found.last().copied(), limit).await.unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            found.extend(page.iter().map(|found| found.delivery));
        }
        assert_eq!(found, all, "in pages of {limit}");
    }
}

async fn pages_show_what_the_filter_says(bed: Bed) {
    let billing = plain(&bed).await;
    let audit = bed.route("audit", RouteRules::default()).await;
    let test = bed.store.register_source("stripe-test", None).await.unwrap();
    for (n, event_type) in [(0, "a_b.c"), (1, "axb.c"), (2, "a_b.d"), (3, "x")] {
        let arrival = bed.arrival_at(&format!("e{n}"), "{}", time(NOON + n));
        let source = if n == 3 { test } else { bed.source };
        let takers = vec![billing.taker(), audit.taker()];
        bed.send(Arrival { event_type: event_type.into(), source, takers, ..arrival }).await;
    }
    bed.kill(&billing).await;
    let claimed = bed.take(&billing).await;
    bed.finish(&claimed, Next::Processed).await;
    let list = async |filter: ReplayFilter| -> Vec<String> {
        let page = bed.store.replay_page(&filter, None, 100).await.unwrap();
        let receipts = bed.receipts().await;
        let name = |found: &ReplayCandidate| {
            let receipt = receipts.iter().find(|r| r.receipt == found.delivery.receipt).unwrap();
            assert_eq!(receipt.event_type, found.event_type);
            receipt.event_id.clone()
        };
        page.iter().map(name).collect()
    };
    let of_billing = || ReplayFilter { routes: vec![billing.no], ..Default::default() };
    assert_eq!(list(ReplayFilter::default()).await.len(), 8);
    assert_eq!(list(of_billing()).await, ["e0", "e1", "e2", "e3"]);
    let event_type = Some("a_b*".to_owned());
    assert_eq!(list(ReplayFilter { event_type, ..of_billing() }).await, ["e0", "e2"]);
    let source = Some("stripe-test".to_owned());
    assert_eq!(list(ReplayFilter { source, ..of_billing() }).await, ["e3"]);
    let (since, until) = (Some(time(NOON + 1)), Some(time(NOON + 3)));
    assert_eq!(list(ReplayFilter { since, until, ..of_billing() }).await, ["e1", "e2"]);
    for (state, expected) in
        [(State::Dead, "e0"), (State::Processed, "e1"), (State::Received, "e2 e3")]
    {
        let found = list(ReplayFilter { state: Some(state), ..of_billing() }).await;
        assert_eq!(found.join(" "), expected, "{state}");
    }
    let receipts = vec![bed.receipts().await[2].receipt];
    let one = ReplayFilter { receipts, ..of_billing() };
    assert_eq!(list(one).await, ["e2"]);
}

async fn pages_show_what_would_be_stale(bed: Bed) {
    let skipping = RouteRules { skip_stale: true, ..RouteRules::default() };
    let route = bed.route("billing", skipping).await;
    let ordered = RouteRules { ordered: true, ..RouteRules::default() };
    let other = bed.route("other", ordered).await;
    for (id, version) in [("a5", 5), ("a4", 4), ("a6", 6)] {
        let takers = vec![route.taker(), other.taker()];
        bed.send(Arrival { takers, ..about(&bed, route, id, version) }).await;
        if id == "a5" {
            bed.work_off(&route).await;
            bed.work_off(&other).await;
        }
    }
    let page = bed.store.replay_page(&ReplayFilter::default(), None, 10).await.unwrap();
    let stale: Vec<_> = page.iter().filter(|found| found.stale).collect();
    assert_eq!(stale.len(), 1, "{page:?}");
    assert_eq!(stale[0].delivery.route, route.no);
    assert_eq!(stale[0].delivery.receipt, bed.receipts().await[1].receipt);
}
