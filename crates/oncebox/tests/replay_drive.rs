//! Replays as whoever drives them sees it: planned, driven, interrupted, taken over.

use std::time::Duration;

use oncebox::delivery::{Next, State};
use oncebox::receipt::{Arrival, ReceiptId, RouteNo};
use oncebox::replay::{
    Driver, Ended, Fate, Fill, How, Phase, Plan, Replay, ReplayFilter, ReplayId, Replays,
    RoutePlan, Turn, plan, plan_each,
};
use oncebox::route::RouteRules;
use oncebox::store::{DeliveryFilter, DeliveryRow};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Route, act, ending, key, under};
use oncebox_testkit::wait::DEADLINE;
use tokio::sync::watch;
use tokio::time::Instant;

for_each_store!(
    a_plan_tells_what_would_become_of_each_delivery,
    a_plan_reads_the_ledger,
    a_replay_opens_what_it_planned,
    a_dead_driver_is_taken_over_where_it_was,
    a_cancelled_replay_goes_no_further,
    a_stopped_driver_leaves_the_job_to_others,
    a_server_drives_what_nobody_drives,
    a_stale_event_is_skipped_again_unless_the_guard_is_passed,
    three_replays_of_a_processed_event_keep_its_key,
    a_new_route_is_filled_with_what_it_takes,
    what_no_route_took_goes_to_all_that_take_it_now,
);

/// Longer than a driver's lease.
const LEASE_SECONDS: u32 = 31;

/// Records events and gives all of their deliveries up.
async fn dead(bed: &Bed, route: &Route, count: usize) -> Vec<ReceiptId> {
    let events: Vec<_> =
        (0..count).map(|number| bed.event(&format!("evt_{number:04}"), &[*route])).collect();
    let receipts = events.iter().map(|event| event.receipt).collect();
    bed.record(events).await;
    loop {
        let claims = bed.claim(route, 250).await;
        if claims.claimed.is_empty() {
            return receipts;
        }
        let endings = claims.claimed.iter().map(|claimed| ending(claimed, Next::Dead)).collect();
        bed.store.finish(endings).await.unwrap();
    }
}

fn of_route(route: &Route) -> ReplayFilter {
    ReplayFilter { routes: vec![route.no], ..ReplayFilter::default() }
}

/// Plans a job and records it.
async fn create(bed: &Bed, filter: ReplayFilter, how: How, rate: Option<u32>) -> ReplayId {
    let act = act("the consumer is mended");
    let planned = plan(&*bed.store, &filter, how).await.unwrap().total();
    let job = Replay { rate, ..Replay::new(filter, how, planned, &act) };
    bed.store.create_replay(&job, &act).await.unwrap();
    job.id
}

async fn take(bed: &Bed, id: ReplayId) -> Driver {
    Driver::take(&bed.store, Some(id)).await.unwrap().expect("nobody drives it")
}

/// Drives a job to its end.
async fn drive(bed: &Bed, id: ReplayId) -> Replay {
    let (_never, stop) = watch::channel(false);
    assert_eq!(take(bed, id).await.run(|_| {}, stop).await.unwrap(), Ended::Done);
    job(bed, id).await
}

async fn job(bed: &Bed, id: ReplayId) -> Replay {
    bed.store.replay(id).await.unwrap().expect("the job is there")
}

async fn replay(bed: &Bed, filter: ReplayFilter, how: How) -> Replay {
    let id = create(bed, filter, how, None).await;
    drive(bed, id).await
}

async fn in_state(bed: &Bed, route: &Route, state: State) -> Vec<DeliveryRow> {
    let filter = DeliveryFilter { state: Some(state), limit: 10_000, ..DeliveryFilter::default() };
    let mut rows = bed.store.deliveries(&filter).await.unwrap();
    rows.retain(|row| row.delivery.route == route.no);
    rows
}

/// An event about an object at a version.
fn version(bed: &Bed, event_id: &str, version: i64, route: &Route) -> Arrival {
    Arrival {
        object: Some("in_456".into()),
        version: Some(version),
        ..bed.event(event_id, &[*route])
    }
}

/// Of three events of one object, the first is dead with one effect done and one without an answer,
/// and the others wait behind it.
async fn a_plan_reads_the_ledger(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    for (event, version) in [("evt_1", 1), ("evt_2", 2)] {
        let event = bed.event(event, &[route]);
        let (object, version) = (Some("in_1".into()), Some(version));
        bed.send(Arrival { object, version, ..event }).await;
    }
    let first = bed.take(&route).await;
    for name in ["charge:in_1", "mail:in_1"] {
        bed.begin(&first, &key(name)).await;
    }
    bed.store.complete_effect(under(&first), &key("charge:in_1"), None).await.unwrap();
    assert!(bed.finish(&first, Next::Dead).await);
    assert!(bed.take_if_any(&route).await.is_none(), "the other waits");

    let (planned, more) =
        plan_each(&*bed.store, &of_route(&route), How::default(), 10).await.unwrap();
    assert!(!more);
    let told: Vec<_> = planned
        .iter()
        .map(|one| {
            let effects = one.effects.iter().map(|it| format!("{} {}", it.key, it.state));
            (one.event_id.as_str(), one.fate, effects.collect::<Vec<_>>())
        })
        .collect();
    let effects = vec!["charge:in_1 done".to_owned(), "mail:in_1 unknown".to_owned()];
    assert_eq!(told, [("evt_1", Fate::Opens, effects), ("evt_2", Fate::Held, vec![])]);
    let counted = plan(&*bed.store, &of_route(&route), How::default()).await.unwrap();
    let counted = &counted.routes[&route.no];
    assert_eq!((counted.opens, counted.held, counted.touched()), (1, 1, 2));
    let (some, more) = plan_each(&*bed.store, &of_route(&route), How::default(), 1).await.unwrap();
    assert_eq!((some.len(), more), (1, true));
}

async fn a_plan_tells_what_would_become_of_each_delivery(bed: Bed) {
    let billing = bed.route("billing", RouteRules::default()).await;
    let mail = bed.route("mail", RouteRules::default()).await;
    for event in ["evt_1", "evt_2", "evt_3"] {
        bed.due(event, &[billing, mail]).await;
    }
    bed.kill(&billing).await;
    let claimed = bed.take(&billing).await;
    assert!(bed.finish(&claimed, Next::Processed).await);
    let busy = bed.take(&billing).await;

    let plan_of = async |filter: &ReplayFilter, how| plan(&*bed.store, filter, how).await.unwrap();
    let all = ReplayFilter::default();
    let found = plan_of(&all, How::default()).await;
    let on_billing = RoutePlan {
        opens: 1,
        processed: 1,
        busy: 1,
        states: [(State::Dead, 1), (State::Processed, 1), (State::Processing, 1)].into(),
        ..RoutePlan::default()
    };
    let on_mail =
        RoutePlan { busy: 3, states: [(State::Received, 3)].into(), ..RoutePlan::default() };
    let expected = Plan { routes: [(billing.no, on_billing), (mail.no, on_mail)].into() };
    assert_eq!(found, expected);
    assert_eq!((found.touched(), found.total()), (1, 6));

    let forced = plan_of(&of_route(&billing), How { force: true, ..How::default() }).await;
    assert_eq!(forced.routes[&billing.no].opens, 2);
    let dead = ReplayFilter { state: Some(State::Dead), ..ReplayFilter::default() };
    assert_eq!(plan_of(&dead, How::default()).await.total(), 1);
    let other = ReplayFilter { event_type: Some("customer.*".into()), ..ReplayFilter::default() };
    assert_eq!(plan_of(&other, How::default()).await, Plan::default());

    // Looking changed nothing.
    assert!(bed.finish(&busy, Next::Processed).await);
    assert_eq!(bed.rows("replays"), 0);
}

async fn a_replay_opens_what_it_planned(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    dead(&bed, &route, 600).await;
    let id = create(&bed, of_route(&route), How::default(), None).await;
    let mut heard = Vec::new();
    let (_never, stop) = watch::channel(false);
    let progress = |job: &Replay| heard.push(job.opened);
    assert_eq!(take(&bed, id).await.run(progress, stop).await.unwrap(), Ended::Done);
    assert!(heard.len() >= 3 && heard.is_sorted(), "{heard:?}");

    let job = job(&bed, id).await;
    assert_eq!((job.phase, job.planned, job.opened, job.passed), (Phase::Done, 600, 600, 0));
    let opened = in_state(&bed, &route, State::Received).await;
    assert_eq!(opened.len(), 600);
    assert!(opened.iter().all(|row| row.replays == 1 && row.counts.attempts == 0));
    assert!(Driver::take(&bed.store, Some(id)).await.unwrap().is_none(), "it is through");
}

async fn a_dead_driver_is_taken_over_where_it_was(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    dead(&bed, &route, 30).await;
    // Ten in a step; the first step of each driver waits for nothing.
    let id = create(&bed, of_route(&route), How::default(), Some(40)).await;

    let mut first = take(&bed, id).await;
    assert_eq!(first.step().await.unwrap(), Turn::More);
    assert!(Driver::take(&bed.store, Some(id)).await.unwrap().is_none(), "it is driven");
    assert!(Driver::take(&bed.store, None).await.unwrap().is_none(), "and no other is there");

    bed.pass(LEASE_SECONDS);
    let mut second = Driver::take(&bed.store, None).await.unwrap().expect("its lease ran out");
    assert_eq!(second.job().opened, 10);
    assert_eq!(second.step().await.unwrap(), Turn::More);
    assert_eq!(first.step().await.unwrap(), Turn::Lost, "a zombie changes nothing");
    drop((first, second));

    bed.pass(LEASE_SECONDS);
    let mut third = take(&bed, id).await;
    assert_eq!(third.step().await.unwrap(), Turn::Done);
    let job = job(&bed, id).await;
    assert_eq!((job.phase, job.opened, job.passed), (Phase::Done, 30, 0));
    let opened = in_state(&bed, &route, State::Received).await;
    assert_eq!(opened.len(), 30);
    assert!(opened.iter().all(|row| row.replays == 1), "each was opened once");
}

async fn a_cancelled_replay_goes_no_further(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    dead(&bed, &route, 20).await;
    let id = create(&bed, of_route(&route), How::default(), Some(40)).await;
    let mut driver = take(&bed, id).await;
    assert_eq!(driver.step().await.unwrap(), Turn::More);
    assert!(bed.store.cancel_replay(id, &act("too fast")).await.unwrap());
    let (_never, stop) = watch::channel(false);
    assert_eq!(driver.run(|_| {}, stop).await.unwrap(), Ended::Cancelled);
    assert_eq!(job(&bed, id).await.phase, Phase::Cancelled);
    assert_eq!(in_state(&bed, &route, State::Dead).await.len(), 10);
    assert_eq!(in_state(&bed, &route, State::Received).await.len(), 10);
    bed.pass(LEASE_SECONDS);
    assert!(Driver::take(&bed.store, Some(id)).await.unwrap().is_none());
    assert!(!bed.store.cancel_replay(id, &act("again")).await.unwrap());
}

async fn a_stopped_driver_leaves_the_job_to_others(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    dead(&bed, &route, 3).await;
    let id = create(&bed, of_route(&route), How::default(), None).await;
    let (_stop, stopped) = watch::channel(true);
    assert_eq!(take(&bed, id).await.run(|_| {}, stopped).await.unwrap(), Ended::Stopped);
    assert_eq!(job(&bed, id).await.phase, Phase::Running);
    bed.pass(LEASE_SECONDS);
    assert_eq!(drive(&bed, id).await.opened, 3);
}

async fn a_server_drives_what_nobody_drives(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    dead(&bed, &route, 5).await;
    // A slow one, begun by somebody who died, does not keep the other waiting.
    let dead_ones = ReplayFilter { state: Some(State::Dead), ..of_route(&route) };
    let slow = create(&bed, dead_ones, How::default(), Some(1)).await;
    let mut driver = take(&bed, slow).await;
    assert_eq!(driver.step().await.unwrap(), Turn::More);
    drop(driver);
    bed.pass(LEASE_SECONDS);
    let quick = create(&bed, of_route(&route), How::default(), None).await;

    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(Replays::new(bed.store.clone()).run(stopped));
    let through = async {
        while job(&bed, quick).await.phase == Phase::Running {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, through).await.expect("it is driven");
    stop.send(true).unwrap();
    server.await.unwrap();
    assert_eq!(in_state(&bed, &route, State::Received).await.len(), 5);
}

async fn a_stale_event_is_skipped_again_unless_the_guard_is_passed(bed: Bed) {
    let rules = RouteRules { skip_stale: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    bed.send(version(&bed, "evt_new", 7, &route)).await;
    assert_eq!(bed.work_off(&route).await, ["evt_new"]);
    let old = bed.send(version(&bed, "evt_old", 5, &route)).await;
    assert!(bed.work_off(&route).await.is_empty());
    let one = ReplayFilter { receipts: vec![old], ..ReplayFilter::default() };

    let found = plan(&*bed.store, &one, How::default()).await.unwrap();
    assert_eq!(found.routes[&route.no].stale, 1);
    assert_eq!(replay(&bed, one.clone(), How::default()).await.opened, 1);
    assert!(bed.work_off(&route).await.is_empty());
    assert_eq!(bed.states(&route).await, ["evt_new processed", "evt_old skipped:stale"]);

    let passes = How { ignore_stale: true, ..How::default() };
    assert_eq!(plan(&*bed.store, &one, passes).await.unwrap().routes[&route.no].opens, 1);
    replay(&bed, one, passes).await;
    assert_eq!(bed.work_off(&route).await, ["evt_old"]);
}

async fn three_replays_of_a_processed_event_keep_its_key(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let receipt = bed.due("evt_1", &[route]).await;
    let first = bed.take(&route).await;
    assert!(bed.finish(&first, Next::Processed).await);
    let one = ReplayFilter { receipts: vec![receipt], ..ReplayFilter::default() };

    let left = replay(&bed, one.clone(), How::default()).await;
    assert_eq!((left.opened, left.passed), (0, 1), "not without force");
    assert!(bed.take_if_any(&route).await.is_none());

    for number in 1..=3 {
        let forced = How { force: true, ..How::default() };
        assert_eq!(replay(&bed, one.clone(), forced).await.opened, 1);
        let again = bed.take(&route).await;
        assert_eq!((again.key.as_str(), again.replays), (first.key.as_str(), number));
        assert_eq!(again.counts.attempts, 1, "a fresh budget");
        assert!(again.lease > first.lease, "a lease from before does not fit");
        assert!(!bed.finish(&first, Next::Dead).await);
        assert!(bed.finish(&again, Next::Processed).await);
    }
    let attempts = bed.store.attempts(receipt).await.unwrap();
    let told: Vec<_> =
        attempts.iter().map(|attempt| (attempt.replays, attempt.outcome.as_str())).collect();
    let processed = [0, 1, 2, 3].map(|replays| (replays, "processed"));
    assert_eq!(told, processed);
}

fn fill(bed: &Bed, route: RouteNo, event_type: &str) -> Fill {
    Fill { route, source: bed.source, event_type: event_type.into() }
}

async fn a_new_route_is_filled_with_what_it_takes(bed: Bed) {
    let old = bed.route("old", RouteRules::default()).await;
    let of_type = |event: &str, event_type: &str| Arrival {
        event_type: event_type.into(),
        ..bed.event(event, &[old])
    };
    bed.send(of_type("evt_1", "invoice.paid")).await;
    bed.send(of_type("evt_2", "customer.created")).await;
    bed.send(of_type("evt_3", "charge.failed")).await;
    let new = bed.route("new", RouteRules::default()).await;
    bed.due("evt_4", &[old, new]).await;
    assert_eq!(bed.work_off(&new).await, ["evt_4"]);

    let filter = ReplayFilter {
        fill: vec![fill(&bed, new.no, "invoice.*"), fill(&bed, new.no, "charge.*")],
        ..of_route(&new)
    };
    let found = plan(&*bed.store, &filter, How::default()).await.unwrap();
    let route = &found.routes[&new.no];
    assert_eq!((route.fills, route.processed, found.total()), (2, 1, 3));
    let done = replay(&bed, filter.clone(), How::default()).await;
    assert_eq!((done.opened, done.passed), (2, 1));
    assert_eq!(bed.work_off(&new).await, ["evt_1", "evt_3"]);
    let again = replay(&bed, filter, How::default()).await;
    assert_eq!((again.opened, again.passed), (0, 3), "nothing is filled twice");
}

async fn what_no_route_took_goes_to_all_that_take_it_now(bed: Bed) {
    let receipts = [bed.due("evt_1", &[]).await, bed.due("evt_2", &[]).await];
    let billing = bed.route("billing", RouteRules::default()).await;
    let mail = bed.route("mail", RouteRules::default()).await;
    bed.due("evt_3", &[billing]).await;
    let filter = ReplayFilter {
        routes: vec![billing.no, mail.no],
        unrouted: true,
        fill: vec![fill(&bed, billing.no, "*"), fill(&bed, mail.no, "*")],
        ..ReplayFilter::default()
    };
    // One in a step: both routes of a receipt are opened together all the same.
    let id = create(&bed, filter, How::default(), Some(1)).await;
    for turn in [Turn::More, Turn::Done] {
        let mut driver = take(&bed, id).await;
        assert_eq!(driver.step().await.unwrap(), turn);
        bed.pass(LEASE_SECONDS);
    }
    assert_eq!(job(&bed, id).await.opened, 4);
    assert_eq!(bed.work_off(&mail).await, ["evt_1", "evt_2"]);
    let receipts = receipts.map(|receipt| billing.of(receipt));
    for delivery in receipts {
        assert_eq!(bed.delivery(delivery).await.state, State::Received);
    }
}

/// A hundred at forty a second: ten at once, then ten every quarter of a second. No time passes:
/// the clock of the test jumps to whatever is waited for.
#[tokio::test]
async fn a_rate_is_kept() {
    let bed = Bed::sqlite().await;
    let route = bed.route("billing", RouteRules::default()).await;
    dead(&bed, &route, 100).await;
    let id = create(&bed, of_route(&route), How::default(), Some(40)).await;
    tokio::time::pause();
    let began = Instant::now();
    assert_eq!(drive(&bed, id).await.opened, 100);
    let took = began.elapsed();
    let expected = Duration::from_millis(9 * 250);
    assert!(took >= expected && took < expected + Duration::from_millis(250), "{took:?}");
}
