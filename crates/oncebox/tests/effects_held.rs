//! Effects that nobody knows the outcome of: deliveries that wait for a person, what that person
//! may say, and how the deliveries go on.

use std::time::Duration;

use oncebox::delivery::{Claimed, Next, Reason, State};
use oncebox::effect::{Begun, EffectActed, EffectState, Settled, Verdict};
use oncebox::limits;
use oncebox::receipt::Arrival;
use oncebox::replay::{How, Reopened, Replay, ReplayFilter, ReplayStep};
use oncebox::route::RouteRules;
use oncebox::store::{
    Acted, DeliveryFilter, Ledger, PostgresOptions, PostgresStore, Purpose, StoreError, Unblocked,
};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, Route, act, key, step, until};
use oncebox_testkit::wait::DEADLINE;
use tokio_postgres::NoTls;

for_each_store!(
    asking_parks_the_delivery,
    a_parked_delivery_is_shown,
    what_was_done_is_not_begun_again,
    what_was_not_done_is_begun_again,
    only_what_is_unknown_is_settled,
    everybody_who_waits_goes_on,
    whoever_does_it_lets_the_others_go_on,
    what_is_forgotten_may_happen_again,
    what_is_forgotten_lets_go,
    what_somebody_is_at_is_not_forgotten,
    a_parked_head_holds_its_followers,
    a_parked_delivery_leaves_the_lane_of_a_route_without_order,
    a_parked_delivery_may_be_discarded,
    a_parked_delivery_may_be_replayed,
    a_parked_delivery_may_be_released,
    parking_costs_no_attempt,
    operators_settle_beside_the_server,
    an_act_that_cannot_be_written_down_is_not_done,
    bad_results_are_refused,
);

const REFUND: &str = "refund:ch_1";

async fn billing(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

/// An effect that was begun by a delivery whose lease then ran out, and that delivery claimed
/// again.
async fn lost(bed: &Bed, route: &Route, event_id: &str, effect: &str) -> Claimed {
    let first = bed.working_on(event_id, route).await;
    assert!(matches!(bed.begin(&first, &key(effect)).await, Begun::Yours { .. }));
    bed.lose_leases().await;
    let again = bed.take(route).await;
    assert_eq!(again.delivery, first.delivery);
    again
}

/// The same, and the delivery asked about it.
async fn parked(bed: &Bed, route: &Route, event_id: &str, effect: &str) -> Claimed {
    let again = lost(bed, route, event_id, effect).await;
    assert!(matches!(bed.ask(&again, &key(effect)).await, Begun::Parked(_)));
    again
}

fn done(result: Option<&str>) -> Verdict {
    Verdict::Done { result: result.map(str::to_owned) }
}

fn released(released: usize) -> EffectActed {
    EffectActed::Done { released }
}

/// What the audit says: `settle-effect refund:ch_1 found it`.
async fn acts(bed: &Bed) -> Vec<String> {
    let mut acts = bed.store.audit(None, 100).await.unwrap();
    acts.reverse();
    acts.iter()
        .map(|line| {
            assert_eq!((line.who.as_str(), line.via.as_str()), ("ada", "cli"));
            format!("{} {} {}", line.act, line.subject, line.why.clone().unwrap_or_default())
        })
        .collect()
}

async fn asking_parks_the_delivery(mut bed: Bed) {
    let route = billing(&bed).await;
    let claimed = lost(&bed, &route, "e1", REFUND).await;
    let lapsed = bed.effect(REFUND).await;
    assert_eq!(bed.ask(&claimed, &key(REFUND)).await, Begun::Parked(lapsed.clone()));
    assert_eq!(bed.effect_written(REFUND), "unknown|1", "what was read is written down");
    assert_eq!(bed.effect(REFUND).await, lapsed);

    // Its lease has ended: nothing that worker says counts.
    assert_eq!(bed.begin(&claimed, &key(REFUND)).await, Begun::LeaseLost);
    assert!(!bed.finish(&claimed, Next::Processed).await);
    let leases = [(claimed.delivery, claimed.lease)];
    assert_eq!(bed.extend(&leases).await, [false]);

    bed.pass(3600);
    assert_eq!(bed.take_if_any(&route).await, None);
    let unblocked = bed.store.release_unblocked(100).await.unwrap();
    assert_eq!(unblocked, Unblocked { released: 0, more: false });
    bed.store.hasten(claimed.delivery, Duration::ZERO).await.unwrap();
    bed.reopen().await;
    assert_eq!(bed.states(&route).await, ["e1 held:unknown-effect"]);
    assert_eq!(bed.query("SELECT effect FROM deliveries"), REFUND);
    assert_eq!(bed.take_if_any(&route).await, None);
}

async fn a_parked_delivery_is_shown(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = parked(&bed, &route, "e1", REFUND).await;
    let row = bed.delivery(claimed.delivery).await;
    assert_eq!((row.state, row.reason), (State::Held, Some(Reason::UnknownEffect)));
    assert_eq!((row.due_at, row.lease_until, row.worker), (None, None, None));
    assert!(row.detail.is_some_and(|detail| detail.contains(REFUND)));
    let counts = row.counts;
    assert_eq!((counts.attempts, counts.failures, counts.crashes, counts.snoozes), (2, 0, 1, 1));

    let reason = Some(Reason::UnknownEffect);
    let filter = DeliveryFilter { reason, limit: 10, ..DeliveryFilter::default() };
    let listed = bed.store.deliveries(&filter).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.delivery).collect::<Vec<_>>(), [claimed.delivery]);
    let tally = bed.store.tally().await.unwrap();
    assert_eq!((tally.len(), tally[0].reason, tally[0].count), (1, reason, 1));
    let standing = bed.store.standing(claimed.delivery).await.unwrap().unwrap();
    assert_eq!((standing.state, standing.reason), (State::Held, reason));
    let attempts = bed.store.attempts(claimed.delivery.receipt).await.unwrap();
    let told: Vec<_> = attempts.iter().map(|a| (a.number, a.outcome.as_str())).collect();
    assert_eq!(told, [(1, "lost"), (2, "snooze")]);
    assert!(attempts[1].detail.as_ref().is_some_and(|detail| detail.contains(REFUND)));
}

async fn what_was_done_is_not_begun_again(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = parked(&bed, &route, "e1", REFUND).await;
    let unknown = bed.effect(REFUND).await;
    let verdict = done(Some(r#"{"id":"re_1"}"#));
    let acted = bed.store.settle_effect(REFUND, &verdict, &act("found it")).await.unwrap();
    assert_eq!(acted, released(1));
    let effect = bed.effect(REFUND).await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Done, 1));
    assert_eq!(effect.result.as_deref(), Some(r#"{"id":"re_1"}"#));
    assert_eq!(effect.delivery, claimed.delivery);
    assert!(effect.at >= unknown.at);
    assert_eq!(acts(&bed).await, ["settle-effect refund:ch_1 found it"]);

    assert_eq!(bed.states(&route).await, ["e1 retrying"]);
    assert_eq!(bed.query("SELECT count(*) FROM deliveries WHERE effect IS NOT NULL"), "0");
    let again = bed.take(&route).await;
    assert_eq!(again.counts.attempts, 3);
    assert_eq!(bed.ask(&again, &key(REFUND)).await, Begun::Done(effect.clone()));
    assert!(bed.finish(&again, Next::Processed).await);
}

async fn what_was_not_done_is_begun_again(bed: Bed) {
    let route = billing(&bed).await;
    parked(&bed, &route, "e1", REFUND).await;
    let acted = bed.store.settle_effect(REFUND, &Verdict::NotDone, &act("never came")).await;
    assert_eq!(acted.unwrap(), released(1));
    assert_eq!(bed.store.effect(REFUND).await.unwrap(), None);
    assert_eq!(acts(&bed).await, ["settle-effect refund:ch_1 never came"]);
    let again = bed.take(&route).await;
    let fresh = Begun::Yours { key: REFUND.into(), unknowns: 0, evidence: None };
    assert_eq!(bed.ask(&again, &key(REFUND)).await, fresh);
    assert_eq!(bed.complete(&again, &key(REFUND), None).await, Settled::Done);
}

/// Not what is done, nor what somebody is at, nor what is not there. What has lapsed is unknown,
/// though nobody has written that down.
async fn only_what_is_unknown_is_settled(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    let settle = async |key: &str, verdict: &Verdict| {
        bed.store.settle_effect(key, verdict, &act("guess")).await.unwrap()
    };
    bed.begin(&claimed, &key("done")).await;
    bed.complete(&claimed, &key("done"), Some("1")).await;
    bed.begin(&claimed, &key("started")).await;
    for verdict in [done(Some("2")), Verdict::NotDone] {
        assert_eq!(settle("nothing", &verdict).await, EffectActed::NotFound);
        assert_eq!(settle("done", &verdict).await, EffectActed::Not(EffectState::Done));
        assert_eq!(settle("started", &verdict).await, EffectActed::Not(EffectState::Started));
    }
    assert_eq!(bed.effect("done").await.result.as_deref(), Some("1"));
    assert_eq!(bed.effect_written("started"), "started|0");
    assert_eq!(acts(&bed).await, [""; 0]);

    bed.pass(61);
    assert_eq!(settle("started", &done(None)).await, released(0));
    assert_eq!(bed.effect_written("started"), "done|1");
    assert_eq!(settle("started", &done(None)).await, EffectActed::Not(EffectState::Done));
    assert_eq!(acts(&bed).await, ["settle-effect started guess"]);
}

async fn everybody_who_waits_goes_on(bed: Bed) {
    let route = billing(&bed).await;
    let other = bed.route("audit", RouteRules::default()).await;
    parked(&bed, &route, "e1", REFUND).await;
    for (event, route) in [("e2", &route), ("e3", &other)] {
        let claimed = bed.working_on(event, route).await;
        assert!(matches!(bed.ask(&claimed, &key(REFUND)).await, Begun::Parked(_)));
    }
    let stranger = bed.working_on("e4", &route).await;
    bed.begin(&stranger, &key("other")).await;
    assert!(bed.finish(&stranger, Next::Retry(Duration::ZERO)).await);
    let stranger = bed.take(&route).await;
    assert!(matches!(bed.ask(&stranger, &key("other")).await, Begun::Parked(_)));

    assert_eq!(bed.effect_written(REFUND), "unknown|1", "asking is not beginning");
    let acted = bed.store.settle_effect(REFUND, &done(None), &act("found it")).await.unwrap();
    assert_eq!(acted, released(3));
    let states = ["e1 retrying", "e2 retrying", "e4 held:unknown-effect"];
    assert_eq!(bed.states(&route).await, states);
    assert_eq!(bed.states(&other).await, ["e3 retrying"]);
}

/// One asks, another begins again because its other end takes the key.
async fn whoever_does_it_lets_the_others_go_on(bed: Bed) {
    let route = billing(&bed).await;
    parked(&bed, &route, "e1", REFUND).await;
    let bold = bed.working_on("e2", &route).await;
    let again = Begun::Yours { key: REFUND.into(), unknowns: 1, evidence: None };
    assert_eq!(bed.begin(&bold, &key(REFUND)).await, again);
    assert_eq!(bed.states(&route).await[0], "e1 held:unknown-effect");
    assert_eq!(bed.complete(&bold, &key(REFUND), None).await, Settled::Done);
    assert_eq!(bed.states(&route).await[0], "e1 retrying");
    let asker = bed.take(&route).await;
    let Begun::Done(effect) = bed.ask(&asker, &key(REFUND)).await else { panic!("done") };
    assert_eq!((effect.delivery, effect.conflicts), (bold.delivery, 1));
}

async fn what_is_forgotten_may_happen_again(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    bed.begin(&first, &key(REFUND)).await;
    bed.complete(&first, &key(REFUND), Some("1")).await;
    let second = bed.working_on("e2", &route).await;
    assert!(matches!(bed.begin(&second, &key(REFUND)).await, Begun::Done(_)));
    assert_eq!(bed.rows("effect_conflicts"), 1);

    let forget = async |key: &str| bed.store.forget_effect(key, &act("again")).await.unwrap();
    assert_eq!(forget(REFUND).await, released(0));
    assert_eq!((bed.rows("effects"), bed.rows("effect_conflicts")), (0, 0));
    assert_eq!(acts(&bed).await, ["forget-effect refund:ch_1 again"]);
    assert_eq!(forget(REFUND).await, EffectActed::NotFound);
    assert_eq!(acts(&bed).await.len(), 1);
    let fresh = Begun::Yours { key: REFUND.into(), unknowns: 0, evidence: None };
    assert_eq!(bed.begin(&second, &key(REFUND)).await, fresh);
}

async fn what_is_forgotten_lets_go(bed: Bed) {
    let route = billing(&bed).await;
    parked(&bed, &route, "e1", REFUND).await;
    let acted = bed.store.forget_effect(REFUND, &act("again")).await.unwrap();
    assert_eq!(acted, released(1));
    assert_eq!(bed.states(&route).await, ["e1 retrying"]);
    assert_eq!(bed.rows("effects"), 0);
}

async fn what_somebody_is_at_is_not_forgotten(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    bed.begin(&claimed, &key(REFUND)).await;
    let acted = bed.store.forget_effect(REFUND, &act("again")).await.unwrap();
    assert_eq!(acted, EffectActed::Not(EffectState::Started));
    assert_eq!(bed.complete(&claimed, &key(REFUND), None).await, Settled::Done);
    bed.begin(&claimed, &key("lapsed")).await;
    bed.pass(61);
    assert_eq!(bed.store.forget_effect("lapsed", &act("again")).await.unwrap(), released(0));
    assert_eq!(bed.complete(&claimed, &key("lapsed"), None).await, Settled::NotBegun);
}

fn about(bed: &Bed, route: Route, event_id: &str, version: i64) -> Arrival {
    Arrival { object: Some("a".into()), version: Some(version), ..bed.event(event_id, &[route]) }
}

/// Two events of one object, the first of them parked.
async fn parked_first_of_two(bed: &Bed, rules: RouteRules) -> (Route, Claimed) {
    let route = bed.route("billing", rules).await;
    bed.send(about(bed, route, "a1", 1)).await;
    bed.send(about(bed, route, "a2", 2)).await;
    let first = bed.take(&route).await;
    assert_eq!(first.event_id, "a1");
    bed.begin(&first, &key(REFUND)).await;
    bed.lose_leases().await;
    let again = bed.take(&route).await;
    assert_eq!(bed.take_if_any(&route).await, None, "the second waits for the first");
    assert!(matches!(bed.ask(&again, &key(REFUND)).await, Begun::Parked(_)));
    (route, again)
}

async fn a_parked_head_holds_its_followers(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let (route, _) = parked_first_of_two(&bed, rules).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    bed.store.release_unblocked(100).await.unwrap();
    assert_eq!(bed.take_if_any(&route).await, None);
    assert_eq!(bed.states(&route).await, ["a1 held:unknown-effect", "a2 held:order"]);
    bed.store.settle_effect(REFUND, &done(None), &act("found it")).await.unwrap();
    assert_eq!(bed.work_off(&route).await, ["a1", "a2"]);
}

async fn a_parked_delivery_leaves_the_lane_of_a_route_without_order(bed: Bed) {
    let rules = RouteRules { skip_stale: true, ..RouteRules::default() };
    let (route, _) = parked_first_of_two(&bed, rules).await;
    assert_eq!(bed.work_off(&route).await, ["a2"]);
    bed.store.settle_effect(REFUND, &done(None), &act("found it")).await.unwrap();
    assert_eq!(bed.work_off(&route).await, [""; 0]);
    assert_eq!(bed.states(&route).await, ["a1 skipped:stale", "a2 processed"]);
}

async fn a_parked_delivery_may_be_discarded(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let (route, first) = parked_first_of_two(&bed, rules).await;
    let acted = bed.store.discard(first.delivery, &act("never mind")).await.unwrap();
    assert_eq!(acted, Acted::Done);
    assert_eq!(bed.work_off(&route).await, ["a2"]);
    let acted = bed.store.settle_effect(REFUND, &done(None), &act("found it")).await.unwrap();
    assert_eq!(acted, released(0));
    assert_eq!(bed.states(&route).await, ["a1 skipped:discarded", "a2 processed"]);
}

/// A replay comes with a fresh budget, and asks again.
async fn a_parked_delivery_may_be_replayed(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = parked(&bed, &route, "e1", REFUND).await;
    let receipts = vec![claimed.delivery.receipt];
    let filter = ReplayFilter { receipts, ..Default::default() };
    let job = Replay::new(filter, How::default(), 1, &act("again"));
    bed.store.create_replay(&job, &act("again")).await.unwrap();
    let job = bed.store.take_replay(Some(job.id), LEASE).await.unwrap().expect("taken");
    let replay = ReplayStep {
        id: job.id,
        lease: job.lease,
        open: vec![(claimed.delivery, false)],
        passed: 0,
        cursor: Some(claimed.delivery),
        done: true,
        how: How::default(),
    };
    let reopened = bed.store.step_replay(&replay).await.unwrap();
    assert_eq!(reopened, Some(vec![Reopened::Opened]));
    goes_on_and_asks_again(&bed, &route).await;
}

async fn a_parked_delivery_may_be_released(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = parked(&bed, &route, "e1", REFUND).await;
    let acted = bed.store.release(claimed.delivery, &act("go on")).await.unwrap();
    assert_eq!(acted, Acted::Done);
    let passing = bed.query("SELECT count(*) FROM deliveries WHERE ignores_order");
    assert_eq!(passing, "0", "it is at its place, and passes nobody");
    goes_on_and_asks_again(&bed, &route).await;
}

/// It waits for nothing meanwhile, so settling the effect does not touch it.
async fn goes_on_and_asks_again(bed: &Bed, route: &Route) {
    assert_eq!(bed.states(route).await, ["e1 received"]);
    assert_eq!(bed.query("SELECT count(*) FROM deliveries WHERE effect IS NOT NULL"), "0");
    let again = bed.take(route).await;
    assert!(matches!(bed.ask(&again, &key(REFUND)).await, Begun::Parked(_)));
    assert_eq!(bed.states(route).await, ["e1 held:unknown-effect"]);
    assert_eq!(bed.effect_written(REFUND), "unknown|1");
    let acted = bed.store.settle_effect(REFUND, &Verdict::NotDone, &act("no")).await.unwrap();
    assert_eq!(acted, released(1));
    let again = bed.take(route).await;
    assert!(matches!(bed.ask(&again, &key(REFUND)).await, Begun::Yours { unknowns: 0, .. }));
}

/// Asking a person more often than a route has attempts costs none of them.
async fn parking_costs_no_attempt(bed: Bed) {
    let rules = RouteRules { max_attempts: 2, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let first = bed.working_on("e1", &route).await;
    bed.begin(&first, &step("charge")).await;
    let charge = format!("{}/billing/charge", first.delivery.receipt);
    let mut claimed = bed.try_again(&first, &route).await;
    for time in 1..=3 {
        let Begun::Parked(effect) = bed.ask(&claimed, &step("charge")).await else { panic!() };
        assert_eq!((effect.key.as_str(), effect.unknowns), (charge.as_str(), 1));
        let counts = bed.delivery(first.delivery).await.counts;
        assert_eq!((counts.attempts, counts.snoozes, counts.spent()), (1 + time, time, 1));
        bed.store.release(first.delivery, &act("go on")).await.unwrap();
        claimed = bed.take(&route).await;
    }
    bed.lose_leases().await;
    assert_eq!(bed.states(&route).await, ["e1 dead"], "that attempt was the second");
}

async fn operators_settle_beside_the_server(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = parked(&bed, &route, "e1", REFUND).await;
    let beside = oncebox::store::open(&bed.url, Purpose::Operate).await.unwrap();
    assert_eq!(beside.effect(REFUND).await.unwrap(), Some(bed.effect(REFUND).await));
    let acted = beside.settle_effect(REFUND, &done(None), &act("found it")).await.unwrap();
    assert_eq!(acted, released(1));
    beside.close().await;
    let again = bed.take(&route).await;
    assert_eq!(again.delivery, claimed.delivery);
    assert!(matches!(bed.ask(&again, &key(REFUND)).await, Begun::Done(_)));
}

async fn an_act_that_cannot_be_written_down_is_not_done(bed: Bed) {
    let route = billing(&bed).await;
    parked(&bed, &route, "e1", REFUND).await;
    bed.query("ALTER TABLE audit RENAME TO hidden");
    for verdict in [done(None), Verdict::NotDone] {
        assert!(bed.store.settle_effect(REFUND, &verdict, &act("found it")).await.is_err());
    }
    assert!(bed.store.forget_effect(REFUND, &act("again")).await.is_err());
    bed.query("ALTER TABLE hidden RENAME TO audit");
    assert_eq!(bed.effect_written(REFUND), "unknown|1");
    assert_eq!(bed.states(&route).await, ["e1 held:unknown-effect"]);
}

async fn bad_results_are_refused(bed: Bed) {
    let route = billing(&bed).await;
    parked(&bed, &route, "e1", REFUND).await;
    let large = done(Some(&"1".repeat(limits::RESULT_BYTES + 1)));
    for verdict in [large, done(Some("")), done(Some("sent"))] {
        let refused = bed.store.settle_effect(REFUND, &verdict, &act("found it")).await;
        assert!(matches!(refused, Err(StoreError::Data(_))), "{refused:?}");
    }
    assert_eq!(bed.effect_written(REFUND), "unknown|1");
    assert_eq!(bed.states(&route).await, ["e1 held:unknown-effect"]);
    assert_eq!(acts(&bed).await, [""; 0]);
}

/// The server of a SQLite file takes every lease with it, and what was begun under them is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_leaves_effects_unknown() {
    let mut bed = Bed::sqlite().await;
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    bed.begin(&claimed, &key(REFUND)).await;
    bed.reopen().await;
    let effect = bed.effect(REFUND).await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Unknown, 1));
    assert_eq!(bed.complete(&claimed, &key(REFUND), Some("1")).await, Settled::Late);
    let again = bed.take(&route).await;
    let Begun::Parked(effect) = bed.ask(&again, &key(REFUND)).await else { panic!("parked") };
    assert_eq!(effect.evidence.and_then(|evidence| evidence.result).as_deref(), Some("1"));
}

/// The same store, with more patience for the locks of others than a test needs.
async fn patient(bed: &Bed) -> PostgresStore {
    let options = PostgresOptions { lock_wait: DEADLINE, ..PostgresOptions::new(&bed.url) };
    PostgresStore::open(options, Purpose::Operate).await.unwrap()
}

/// As when a reload has the route guard objects from now on. The row has moved when its lock is
/// had.
#[tokio::test(flavor = "multi_thread")]
async fn a_parked_delivery_that_is_just_changed_is_let_go() {
    let bed = Bed::postgres().await;
    let route = billing(&bed).await;
    let claimed = parked(&bed, &route, "e1", REFUND).await;
    let (mut other, connection) = tokio_postgres::connect(&bed.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let changing = other.transaction().await.unwrap();
    let change = "UPDATE oncebox.deliveries SET snoozes = snoozes";
    changing.batch_execute(change).await.unwrap();
    let (verdict, why) = (done(None), act("found it"));
    let store = patient(&bed).await;
    let settling = store.settle_effect(REFUND, &verdict, &why);
    let committing = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until(|| bed.query(waiting) == "1").await;
        changing.commit().await.unwrap();
    };
    assert_eq!(tokio::join!(settling, committing).0.unwrap(), released(1));
    assert_eq!(bed.take(&route).await.delivery, claimed.delivery);
}
