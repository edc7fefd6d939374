//! What is said of an effect too late: whose word is kept as evidence, and what a person said
//! before does not silence it.

use jiff::SignedDuration;
use oncebox::delivery::{Claimed, DeliveryId, Lease};
use oncebox::effect::{Begun, EffectState, Settled, Under, Verdict};
use oncebox::receipt::ReceiptId;
use oncebox::route::RouteRules;
use oncebox::store::SweepCursor;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Route, act, key, step, under};

for_each_store!(
    only_whoever_began_it_gives_evidence,
    a_result_is_not_replaced_by_none,
    every_zombie_is_heard,
    what_comes_after_a_person_said_done_is_evidence,
    what_comes_after_a_person_said_not_done_opens_it_again,
    what_comes_after_it_was_begun_afresh_is_evidence,
    what_is_abandoned_keeps_the_evidence_of_others,
    what_is_lost_counts_with_the_evidence_of_others,
    what_is_forgotten_is_forgotten_of_everybody,
    a_completion_after_an_abandonment_is_evidence,
    who_gave_no_answer_is_forgotten_in_time,
);

const REFUND: &str = "refund:ch_1";
const CHARGE: &str = r#"{"charge":"ch_1"}"#;

async fn billing(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

/// What was said too late, if anything was.
async fn evidence(bed: &Bed) -> Option<Option<String>> {
    bed.effect(REFUND).await.evidence.map(|evidence| evidence.result)
}

fn said(result: &str) -> Option<Option<String>> {
    Some(Some(result.to_owned()))
}

/// An effect that was taken over: by whom, and from whom.
async fn taken_over(bed: &Bed, route: &Route) -> (Claimed, Claimed) {
    let zombie = bed.working_on("e1", route).await;
    bed.begin(&zombie, &key(REFUND)).await;
    bed.lose_leases().await;
    let again = bed.take(route).await;
    assert!(matches!(bed.begin(&again, &key(REFUND)).await, Begun::Yours { unknowns: 1, .. }));
    (again, zombie)
}

/// Not a delivery that is made up, nor a lease that is, nor somebody who was late with something
/// else, on this route or another.
async fn only_whoever_began_it_gives_evidence(bed: Bed) {
    let route = billing(&bed).await;
    let analytics = bed.route("analytics", RouteRules::default()).await;
    let late = [bed.working_on("a1", &analytics).await, bed.working_on("a2", &route).await];
    bed.begin(&late[1], &key("other")).await;
    bed.lose_leases().await;
    for (claimed, route) in late.iter().zip([&analytics, &route]) {
        assert_eq!(bed.take(route).await.delivery, claimed.delivery);
    }
    let (_, zombie) = taken_over(&bed, &route).await;
    assert_eq!(bed.complete(&zombie, &key(REFUND), Some(CHARGE)).await, Settled::Late);

    let real = under(&zombie);
    let made_up = DeliveryId { receipt: ReceiptId::from_bytes([7; 16]), route: analytics.no };
    let strangers = [
        Under { delivery: made_up, lease: Lease(1) },
        Under { delivery: made_up, ..real },
        Under { delivery: DeliveryId { route: analytics.no, ..real.delivery }, ..real },
        Under { lease: Lease(1), ..real },
        Under { lease: Lease(real.lease.0 - 1), ..real },
        under(&late[0]),
        under(&late[1]),
    ];
    for stranger in strangers {
        let said = bed.store.complete_effect(stranger, &key(REFUND), Some("\"x\"")).await.unwrap();
        assert_eq!(said, Settled::NotBegun, "{stranger:?}");
        let said = bed.store.abandon_effect(stranger, &key(REFUND)).await.unwrap();
        assert_eq!(said, Settled::NotBegun, "{stranger:?}");
    }
    assert_eq!(evidence(&bed).await, said(CHARGE));
}

async fn a_result_is_not_replaced_by_none(bed: Bed) {
    let route = billing(&bed).await;
    let (second, first) = taken_over(&bed, &route).await;
    bed.lose_leases().await;
    assert_eq!(bed.complete(&first, &key(REFUND), None).await, Settled::Late);
    assert_eq!(evidence(&bed).await, Some(None), "without a result it is a word still");
    assert_eq!(bed.complete(&first, &key(REFUND), Some(CHARGE)).await, Settled::Late);
    let kept = bed.effect(REFUND).await.evidence;
    assert_eq!(bed.complete(&second, &key(REFUND), None).await, Settled::Late);
    assert_eq!(bed.effect(REFUND).await.evidence, kept);
    assert_eq!(bed.complete(&second, &key(REFUND), Some("2")).await, Settled::Late);
    assert_eq!(evidence(&bed).await, said("2"));
}

/// Each of several that it was taken from, of one delivery and of another, and of a step.
async fn every_zombie_is_heard(bed: Bed) {
    let route = billing(&bed).await;
    let (second, first) = taken_over(&bed, &route).await;
    bed.begin(&second, &step("charge")).await;
    bed.lose_leases().await;
    let third = bed.take(&route).await;
    bed.begin(&third, &step("charge")).await;
    let other = bed.working_on("e2", &route).await;
    assert!(matches!(bed.begin(&other, &key(REFUND)).await, Begun::Yours { unknowns: 2, .. }));
    assert_eq!(bed.complete(&other, &key(REFUND), None).await, Settled::Done);
    for (zombie, result) in [(&first, "1"), (&second, "2")] {
        assert_eq!(bed.complete(zombie, &key(REFUND), Some(result)).await, Settled::Late);
        assert_eq!(evidence(&bed).await, said(result));
    }
    assert_eq!(bed.complete(&second, &step("charge"), Some("1")).await, Settled::Late);
    assert_eq!(bed.complete(&first, &step("charge"), Some("1")).await, Settled::NotBegun);
}

/// Whoever was at it last did not do it: the person says so, and does not know of its result.
async fn what_comes_after_a_person_said_done_is_evidence(bed: Bed) {
    let route = billing(&bed).await;
    let zombie = bed.working_on("e1", &route).await;
    bed.begin(&zombie, &key(REFUND)).await;
    bed.lose_leases().await;
    let verdict = Verdict::Done { result: Some("\"by hand\"".into()) };
    bed.store.settle_effect(REFUND, &verdict, &act("found it")).await.unwrap();
    assert_eq!(bed.complete(&zombie, &key(REFUND), Some(CHARGE)).await, Settled::Late);
    assert_eq!(evidence(&bed).await, said(CHARGE));
    assert_eq!(bed.abandon(&zombie, &key(REFUND)).await, Settled::Late);
    let effect = bed.effect(REFUND).await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Done, 1));
    assert_eq!(effect.result.as_deref(), Some("\"by hand\""));
    assert_eq!(effect.delivery, zombie.delivery);

    let again = bed.take(&route).await;
    let Begun::Done(effect) = bed.begin(&again, &key(REFUND)).await else { panic!("done") };
    assert_eq!(effect.conflicts, 0, "it is of the same delivery");
}

/// One says that it did not happen, the other that it did: nobody knows again.
async fn what_comes_after_a_person_said_not_done_opens_it_again(bed: Bed) {
    let route = billing(&bed).await;
    let (second, first) = taken_over(&bed, &route).await;
    bed.lose_leases().await;
    bed.store.settle_effect(REFUND, &Verdict::NotDone, &act("never came")).await.unwrap();
    assert_eq!(bed.abandon(&second, &key(REFUND)).await, Settled::NotBegun);
    assert_eq!(bed.rows("effects"), 0, "nobody says otherwise");
    assert_eq!(bed.complete(&first, &key(REFUND), Some(CHARGE)).await, Settled::Late);
    let effect = bed.effect(REFUND).await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Unknown, 2));
    assert_eq!((effect.delivery, effect.attempt), (first.delivery, 1));
    assert_eq!(evidence(&bed).await, said(CHARGE));
    assert_eq!(bed.effects_in(EffectState::Unknown).await, 1);

    let again = bed.take(&route).await;
    let Begun::Parked(effect) = bed.ask(&again, &key(REFUND)).await else { panic!("parked") };
    assert_eq!(effect.evidence.and_then(|word| word.result).as_deref(), Some(CHARGE));
    let verdict = Verdict::Done { result: None };
    bed.store.settle_effect(REFUND, &verdict, &act("it is there")).await.unwrap();
    assert_eq!(bed.complete(&second, &key(REFUND), Some("2")).await, Settled::Late);
    assert_eq!(evidence(&bed).await, said("2"));
}

/// An effect that a person said did not happen, and that was begun again: by whom, and by whom
/// before.
async fn begun_afresh(bed: &Bed) -> (Claimed, Claimed) {
    let route = billing(bed).await;
    let zombie = bed.working_on("e1", &route).await;
    bed.begin(&zombie, &key(REFUND)).await;
    bed.lose_leases().await;
    bed.store.settle_effect(REFUND, &Verdict::NotDone, &act("never came")).await.unwrap();
    let again = bed.take(&route).await;
    assert!(matches!(bed.begin(&again, &key(REFUND)).await, Begun::Yours { unknowns: 0, .. }));
    (again, zombie)
}

async fn what_comes_after_it_was_begun_afresh_is_evidence(bed: Bed) {
    let (again, zombie) = begun_afresh(&bed).await;
    assert_eq!(bed.complete(&zombie, &key(REFUND), Some(CHARGE)).await, Settled::Late);
    assert_eq!(evidence(&bed).await, said(CHARGE));
    assert_eq!(bed.complete(&again, &key(REFUND), None).await, Settled::Done);
}

/// Somebody says that it happened after a person had said that it did not: whoever has begun it
/// meanwhile may leave it, and nobody knows again.
async fn what_is_abandoned_keeps_the_evidence_of_others(bed: Bed) {
    let (again, zombie) = begun_afresh(&bed).await;
    assert_eq!(bed.complete(&zombie, &key(REFUND), Some(CHARGE)).await, Settled::Late);
    assert_eq!(bed.abandon(&again, &key(REFUND)).await, Settled::Done);
    assert_eq!(bed.effect_written(REFUND), "unknown|1");
    assert_eq!(evidence(&bed).await, said(CHARGE));
    assert!(matches!(bed.ask(&again, &key(REFUND)).await, Begun::Parked(_)));
}

/// The same, and whoever has begun it meanwhile says nothing: two may have done it.
async fn what_is_lost_counts_with_the_evidence_of_others(bed: Bed) {
    let (again, zombie) = begun_afresh(&bed).await;
    assert_eq!(bed.complete(&zombie, &key(REFUND), Some(CHARGE)).await, Settled::Late);
    bed.lose_leases().await;
    assert_eq!(bed.effect(REFUND).await.unknowns, 2);
    let route = billing(&bed).await;
    let third = bed.take(&route).await;
    assert_eq!(third.delivery, again.delivery);
    assert!(matches!(bed.begin(&third, &key(REFUND)).await, Begun::Yours { unknowns: 2, .. }));
}

async fn what_is_forgotten_is_forgotten_of_everybody(bed: Bed) {
    let route = billing(&bed).await;
    let (again, zombie) = taken_over(&bed, &route).await;
    bed.complete(&again, &key(REFUND), None).await;
    bed.store.forget_effect(REFUND, &act("again")).await.unwrap();
    for claimed in [&zombie, &again] {
        assert_eq!(bed.complete(claimed, &key(REFUND), Some("1")).await, Settled::NotBegun);
    }
    assert_eq!((bed.rows("effects"), bed.rows("unanswered")), (0, 0));
}

/// Its lease is good, so it is told what to do. What it says is worth knowing all the same.
async fn a_completion_after_an_abandonment_is_evidence(bed: Bed) {
    let route = billing(&bed).await;
    let (again, _) = taken_over(&bed, &route).await;
    assert_eq!(bed.abandon(&again, &key(REFUND)).await, Settled::Done);
    assert_eq!(bed.complete(&again, &key(REFUND), Some("1")).await, Settled::NotBegun);
    assert_eq!(evidence(&bed).await, said("1"));
    assert_eq!(bed.effect_written(REFUND), "unknown|1");

    let other = bed.working_on("e2", &route).await;
    assert!(matches!(bed.begin(&other, &key(REFUND)).await, Begun::Yours { unknowns: 1, .. }));
    assert_eq!(bed.complete(&again, &key(REFUND), Some("2")).await, Settled::NotBegun);
    assert_eq!(evidence(&bed).await, said("2"));
    assert_eq!(bed.abandon(&again, &key(REFUND)).await, Settled::Done, "said again");
    assert_eq!(bed.complete(&other, &key(REFUND), None).await, Settled::Done);
}

async fn who_gave_no_answer_is_forgotten_in_time(bed: Bed) {
    let route = billing(&bed).await;
    let (again, zombie) = taken_over(&bed, &route).await;
    bed.complete(&again, &key(REFUND), None).await;
    let now = bed.effect(REFUND).await.at;
    let hour = SignedDuration::from_hours(1);
    for (done_before, left) in [(now - hour, 1), (now + hour, 0)] {
        let mut cursor = Some(SweepCursor::default());
        while let Some(from) = cursor {
            cursor = bed.store.expire_effects(from, done_before).await.unwrap().next;
        }
        assert_eq!(bed.rows("unanswered"), left);
        assert_eq!(bed.rows("effects"), 1, "its delivery is open");
    }
    assert_eq!(bed.complete(&zombie, &key(REFUND), Some("1")).await, Settled::NotBegun);
}
