//! Leases of workers elsewhere, while the process that serves a SQLite file is restarted.

use oncebox::delivery::{Claimed, Next, State};
use oncebox::effect::{Begun, EffectActed, EffectState, OnUnknown, Settled, Verdict};
use oncebox::route::RouteRules;
use oncebox::store::{self, Claim, OUTSIDE, Purpose};
use oncebox_testkit::store::{Bed, LEASE, Route, act, key, under};

const REFUND: &str = "refund:ch_1";

/// A delivery that a worker elsewhere holds, with an effect that it has begun.
async fn held_outside(bed: &Bed) -> (Route, Claimed) {
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("evt_1", &[route]).await;
    let worker = format!("{OUTSIDE}reports");
    let claim = Claim { wanted: vec![route.wanted(1)], lease: LEASE, worker };
    let claimed = bed.store.claim(&claim).await.unwrap().claimed.remove(0);
    let begun =
        bed.store.begin_effect(under(&claimed), &key(REFUND), OnUnknown::Retry).await.unwrap();
    assert!(matches!(begun, Begun::Yours { .. }), "{begun:?}");
    (route, claimed)
}

async fn state_of_refund(bed: &Bed) -> EffectState {
    bed.store.effect(REFUND).await.unwrap().expect("it was begun").state
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_elsewhere_keeps_its_lease_over_an_orderly_restart() {
    let mut bed = Bed::sqlite().await;
    let (_, claimed) = held_outside(&bed).await;
    for _ in 0..2 {
        bed.reopen().await;
        assert_eq!(bed.delivery(claimed.delivery).await.state, State::Processing);
        assert_eq!(state_of_refund(&bed).await, EffectState::Started);
    }
    let settled = bed.store.complete_effect(under(&claimed), &key(REFUND), None).await.unwrap();
    assert_eq!(settled, Settled::Done);
    assert!(bed.finish(&claimed, Next::Processed).await);
    assert_eq!(bed.delivery(claimed.delivery).await.counts.crashes, 0);
}

/// The time between the stop and the start does not count, whatever the wall clock says of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_remains_of_a_lease_is_counted_without_the_wall_clock() {
    for by in [-3_600_000, 3_600_000] {
        let mut bed = Bed::sqlite().await;
        let (route, claimed) = held_outside(&bed).await;
        bed.pass(20);
        bed.store.close().await;
        // As if the wall clock had been an hour behind, or ahead, when the server stopped.
        bed.query(&format!("UPDATE deliveries SET lease_until = lease_until + {by}"));
        bed.query(&format!("UPDATE marks SET value = value + {by} WHERE name = 'stopped'"));
        bed.crash().await;
        bed.pass(30);
        assert_eq!(bed.store.rescue(10).await.unwrap().retrying, []);
        bed.pass(11);
        assert_eq!(bed.store.rescue(10).await.unwrap().retrying, [claimed.delivery]);
        assert_eq!(bed.take(&route).await.counts.attempts, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_had_run_out_before_the_stop_is_void() {
    let mut bed = Bed::sqlite().await;
    let (_, claimed) = held_outside(&bed).await;
    bed.pass(61);
    bed.reopen().await;
    assert_eq!(bed.delivery(claimed.delivery).await.state, State::Retrying);
    assert!(!bed.finish(&claimed, Next::Processed).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_every_lease_is_void() {
    let mut bed = Bed::sqlite().await;
    let (_, claimed) = held_outside(&bed).await;
    bed.crash().await;
    let row = bed.delivery(claimed.delivery).await;
    assert_eq!((row.state, row.counts.crashes), (State::Retrying, 1));
    assert_eq!(state_of_refund(&bed).await, EffectState::Unknown);
    assert!(!bed.finish(&claimed, Next::Processed).await);
}

/// The mark of a stop is good for the start that finds it, and for no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_an_orderly_restart_voids_leases() {
    let mut bed = Bed::sqlite().await;
    let (_, claimed) = held_outside(&bed).await;
    bed.reopen().await;
    assert_eq!(bed.query("SELECT count(*) FROM marks WHERE name = 'stopped'"), "0");
    bed.crash().await;
    assert_eq!(bed.delivery(claimed.delivery).await.state, State::Retrying);
    assert!(!bed.finish(&claimed, Next::Processed).await);
}

/// The mark was committed, and the process died before it had copied its log back.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_the_mark_of_a_stop_keeps_leases() {
    let mut bed = Bed::sqlite().await;
    let (_, claimed) = held_outside(&bed).await;
    bed.query(
        "INSERT INTO marks (name, value)
         VALUES ('stopped', CAST(unixepoch('subsec') * 1000 AS INTEGER))",
    );
    bed.crash().await;
    assert_eq!(state_of_refund(&bed).await, EffectState::Started);
    assert!(bed.finish(&claimed, Next::Processed).await);
}

/// While the server is stopped its clock stands still: an operator must not settle an effect whose
/// worker goes on once the server is back.
#[tokio::test(flavor = "multi_thread")]
async fn operators_find_leases_as_the_stop_left_them() {
    let bed = Bed::sqlite().await;
    held_outside(&bed).await;
    bed.store.close().await;
    bed.query("UPDATE deliveries SET lease_until = lease_until - 3600000");
    bed.query("UPDATE marks SET value = value - 3600000 WHERE name = 'stopped'");
    let beside = store::open(&bed.url, Purpose::Operate).await.unwrap();
    let effect = beside.effect(REFUND).await.unwrap().expect("it was begun");
    assert_eq!(effect.state, EffectState::Started);
    let settled = beside.settle_effect(REFUND, &Verdict::NotDone, &act("guessed")).await;
    assert_eq!(settled.unwrap(), EffectActed::Not(EffectState::Started));
    beside.close().await;
}
