//! Effects outside a transaction: who may begin, complete and abandon them, and what is known of
//! them in between.

use std::collections::HashSet;
use std::time::Duration;

use oncebox::delivery::{Claimed, DeliveryId, Lease, Next};
use oncebox::effect::{
    Begun, Effect, EffectKind, EffectName, EffectState, Evidence, OnUnknown, Settled, Under,
};
use oncebox::limits;
use oncebox::receipt::{ReceiptId, RouteNo};
use oncebox::route::RouteRules;
use oncebox::store::StoreError;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Route, key, step, under};

for_each_store!(
    a_begun_effect_is_the_callers,
    what_is_done_is_done_for_everybody,
    the_same_delivery_is_no_conflict,
    a_key_that_many_come_upon_is_not_counted_each_time,
    a_step_belongs_to_one_delivery,
    a_step_outlives_a_rename,
    another_live_lease_is_busy,
    a_lease_that_ends_leaves_an_effect_unknown,
    an_attempt_that_ends_leaves_its_effect_unknown,
    what_is_unknown_is_begun_again,
    unknowns_add_up,
    a_completion_is_heard_twice,
    a_late_completion_is_evidence,
    a_late_completion_changes_nothing_that_was_taken_over,
    what_was_not_begun_is_not_completed,
    what_is_abandoned_may_be_begun_afresh,
    what_is_abandoned_after_a_loss_is_unknown_again,
    a_late_abandonment_changes_nothing,
    without_a_lease_nothing_is_begun,
    one_of_many_begins,
    one_of_many_takes_over,
    bad_input_is_refused,
);

const MAIL: &str = "receipt-email:in_456";

async fn billing(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

/// A beginning that nobody made before.
fn fresh(key: &str) -> Begun {
    Begun::Yours { key: key.into(), unknowns: 0, evidence: None }
}

/// Claims again what was lost, and what is due besides.
async fn take_again(bed: &Bed, route: &Route, delivery: DeliveryId) -> Claimed {
    loop {
        let claimed = bed.take(route).await;
        if claimed.delivery == delivery {
            return claimed;
        }
    }
}

async fn a_begun_effect_is_the_callers(mut bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    assert_eq!(bed.begin(&claimed, &key(MAIL)).await, fresh(MAIL));
    let begun = bed.effect(MAIL).await;
    let expected = Effect {
        key: MAIL.into(),
        kind: EffectKind::Once,
        state: EffectState::Started,
        delivery: claimed.delivery,
        route: "billing".into(),
        attempt: 1,
        at: begun.at,
        result: None,
        unknowns: 0,
        conflicts: 0,
        evidence: None,
    };
    assert_eq!(begun, expected);
    assert_eq!(bed.begin(&claimed, &key(MAIL)).await, fresh(MAIL), "said again");
    assert_eq!(bed.effect(MAIL).await, begun);

    let result = Some(r#"{"sent":1}"#);
    assert_eq!(bed.complete(&claimed, &key(MAIL), result).await, Settled::Done);
    assert!(bed.finish(&claimed, Next::Processed).await);
    bed.reopen().await;
    let done = bed.effect(MAIL).await;
    assert!(done.at >= begun.at);
    let result = result.map(str::to_owned);
    assert_eq!(done, Effect { state: EffectState::Done, at: done.at, result, ..expected });
    assert_eq!(bed.rows("effects"), 1);
}

/// Another event, and another route of the same event.
async fn what_is_done_is_done_for_everybody(bed: Bed) {
    let (billing, audit) = (billing(&bed).await, bed.route("audit", RouteRules::default()).await);
    bed.due("e1", &[billing, audit]).await;
    let first = bed.take(&billing).await;
    bed.begin(&first, &key(MAIL)).await;
    bed.complete(&first, &key(MAIL), Some("7")).await;

    let second = bed.working_on("e2", &billing).await;
    let other_route = bed.take(&audit).await;
    for (claimed, conflicts) in [(&second, 1), (&other_route, 2), (&second, 2)] {
        let Begun::Done(effect) = bed.begin(claimed, &key(MAIL)).await else { panic!("done") };
        assert_eq!(effect.delivery, first.delivery);
        assert_eq!(effect.result.as_deref(), Some("7"));
        assert_eq!(effect.conflicts, conflicts);
        assert_eq!(bed.effect(MAIL).await, effect);
    }
    let conflicts = bed.store.effect_conflicts(MAIL, 10).await.unwrap();
    let found: Vec<_> = conflicts.iter().map(|c| (c.receipt, c.route.as_str())).collect();
    let (second, same) = (second.delivery.receipt, first.delivery.receipt);
    assert_eq!(found, [(second, "billing"), (same, "audit")]);
    assert!(conflicts.iter().all(|conflict| !conflict.differs));
    assert_eq!(bed.store.effect_conflicts(MAIL, 1).await.unwrap(), conflicts[..1]);
    assert_eq!(bed.store.effect_conflicts("other", 10).await.unwrap(), []);
}

async fn the_same_delivery_is_no_conflict(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    bed.begin(&first, &key(MAIL)).await;
    bed.complete(&first, &key(MAIL), None).await;
    let again = bed.try_again(&first, &route).await;
    let Begun::Done(effect) = bed.begin(&again, &key(MAIL)).await else { panic!("done") };
    assert_eq!((effect.attempt, effect.conflicts), (1, 0));
    assert_eq!(bed.rows("effect_conflicts"), 0);
}

/// What has been come upon a million times must not cost the next a count of a million rows.
async fn a_key_that_many_come_upon_is_not_counted_each_time(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("first", &route).await;
    bed.begin(&first, &key(MAIL)).await;
    bed.complete(&first, &key(MAIL), None).await;
    let come = limits::CONFLICTS_TOLD + 3;
    let mut told = 0;
    for number in 0..come {
        let claimed = bed.working_on(&format!("e{number}"), &route).await;
        let Begun::Done(effect) = bed.begin(&claimed, &key(MAIL)).await else { panic!("done") };
        told = effect.conflicts;
    }
    assert_eq!(told, limits::CONFLICTS_TOLD);
    let Begun::Done(own) = bed.begin(&first, &key(MAIL)).await else { panic!("done") };
    assert_eq!(own.conflicts, limits::CONFLICTS_TOLD);
    assert_eq!(bed.effect(MAIL).await.conflicts, come, "a list has them all");
}

async fn a_step_belongs_to_one_delivery(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    let second = bed.working_on("e2", &route).await;
    for claimed in [&first, &second] {
        let key = format!("{}/billing/charge", claimed.delivery.receipt);
        assert_eq!(bed.begin(claimed, &step("charge")).await, fresh(&key));
        assert_eq!(bed.complete(claimed, &step("charge"), None).await, Settled::Done);
        let effect = bed.effect(&key).await;
        assert_eq!((effect.kind, effect.state), (EffectKind::Step, EffectState::Done));
    }
    let again = bed.try_again(&first, &route).await;
    assert!(matches!(bed.begin(&again, &step("charge")).await, Begun::Done(_)));
    let key = format!("{}/billing/mail", again.delivery.receipt);
    assert_eq!(bed.begin(&again, &step("mail")).await, fresh(&key));
    assert_eq!(bed.rows("effect_conflicts"), 0);
}

async fn a_step_outlives_a_rename(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    bed.begin(&claimed, &step("charge")).await;
    let rules = RouteRules::default();
    bed.store.register_route("invoices", Some("billing"), &rules).await.unwrap();
    assert_eq!(bed.complete(&claimed, &step("charge"), None).await, Settled::Done);
    let again = bed.try_again(&claimed, &route).await;
    let Begun::Done(effect) = bed.begin(&again, &step("charge")).await else { panic!("done") };
    assert_eq!(effect.key, format!("{}/billing/charge", claimed.delivery.receipt));
    assert_eq!(effect.route, "invoices");
}

async fn another_live_lease_is_busy(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    let second = bed.working_on("e2", &route).await;
    bed.begin(&first, &key(MAIL)).await;
    let begun = bed.effect(MAIL).await;
    assert_eq!(bed.begin(&second, &key(MAIL)).await, Begun::Busy(begun.clone()));
    assert_eq!(bed.ask(&second, &key(MAIL)).await, Begun::Busy(begun.clone()));
    assert_eq!(bed.complete(&second, &key(MAIL), Some("2")).await, Settled::NotBegun);
    assert_eq!(bed.abandon(&second, &key(MAIL)).await, Settled::NotBegun);
    assert_eq!(bed.effect(MAIL).await, begun);
    assert_eq!(bed.states(&route).await, ["e1 processing", "e2 processing"]);
    assert_eq!(bed.complete(&first, &key(MAIL), Some("1")).await, Settled::Done);
    assert_eq!(bed.effect(MAIL).await.result.as_deref(), Some("1"));
}

/// It is unknown to whoever reads it, before anybody has written that down.
async fn a_lease_that_ends_leaves_an_effect_unknown(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    bed.begin(&claimed, &key(MAIL)).await;
    let begun = bed.effect(MAIL).await;
    assert_eq!(bed.effects_in(EffectState::Started).await, 1);
    bed.pass(61);
    let lapsed = Effect { state: EffectState::Unknown, unknowns: 1, ..begun.clone() };
    assert_eq!(bed.effect(MAIL).await, lapsed);
    assert_eq!(bed.effects_in(EffectState::Started).await, 0);
    assert_eq!(bed.effects_in(EffectState::Unknown).await, 1);
    assert_eq!(bed.effect_written(MAIL), "started|0");

    bed.store.rescue(10).await.unwrap();
    assert_eq!(bed.effect(MAIL).await, lapsed);
    let again = bed.take(&route).await;
    assert_eq!(bed.effect(MAIL).await, lapsed, "a new lease is not the one it was begun under");
    assert_eq!(bed.effect_written(MAIL), "started|0");
    assert_eq!(again.delivery, claimed.delivery);
}

async fn an_attempt_that_ends_leaves_its_effect_unknown(bed: Bed) {
    let route = billing(&bed).await;
    for (event, next) in [
        ("e1", Next::Processed),
        ("e2", Next::Retry(Duration::ZERO)),
        ("e3", Next::Dead),
        ("e4", Next::Stale),
    ] {
        let claimed = bed.working_on(event, &route).await;
        bed.begin(&claimed, &key(event)).await;
        assert!(bed.finish(&claimed, next).await);
        let effect = bed.effect(event).await;
        assert_eq!((effect.state, effect.unknowns), (EffectState::Unknown, 1), "{event}");
        // Out of the way of the next.
        bed.take_if_any(&route).await;
    }
}

/// By the next attempt of the same delivery, and by another delivery.
async fn what_is_unknown_is_begun_again(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    bed.begin(&first, &key(MAIL)).await;
    let begun = bed.effect(MAIL).await;
    bed.lose_leases().await;

    let again = bed.take(&route).await;
    let mine = Begun::Yours { key: MAIL.into(), unknowns: 1, evidence: None };
    assert_eq!(bed.begin(&again, &key(MAIL)).await, mine);
    assert_eq!(bed.begin(&again, &key(MAIL)).await, mine, "said again");
    assert_eq!(bed.effect_written(MAIL), "started|1");
    let effect = bed.effect(MAIL).await;
    assert_eq!((effect.state, effect.attempt), (EffectState::Started, 2));
    assert!(effect.at >= begun.at);

    bed.lose_leases().await;
    bed.due("e2", &[route]).await;
    let lost = bed.take(&route).await;
    assert_eq!(lost.delivery, first.delivery, "what was lost is claimed alone");
    let other = bed.take(&route).await;
    let theirs = Begun::Yours { key: MAIL.into(), unknowns: 2, evidence: None };
    assert_eq!(bed.begin(&other, &key(MAIL)).await, theirs);
    assert!(matches!(bed.begin(&lost, &key(MAIL)).await, Begun::Busy(_)));
    assert_eq!(bed.complete(&other, &key(MAIL), None).await, Settled::Done);
    let done = bed.effect(MAIL).await;
    assert_eq!((done.delivery, done.unknowns), (other.delivery, 2));
    assert_eq!(done.state, EffectState::Done);
}

async fn unknowns_add_up(bed: Bed) {
    let route = billing(&bed).await;
    let receipt = bed.due("e1", &[route]).await;
    for lost in 0..3 {
        let claimed = bed.take(&route).await;
        let mine = Begun::Yours { key: MAIL.into(), unknowns: lost, evidence: None };
        assert_eq!(bed.begin(&claimed, &key(MAIL)).await, mine);
        bed.lose_leases().await;
    }
    assert_eq!(bed.effect(MAIL).await.unknowns, 3);
    let claimed = take_again(&bed, &route, route.of(receipt)).await;
    bed.begin(&claimed, &key(MAIL)).await;
    assert_eq!(bed.complete(&claimed, &key(MAIL), None).await, Settled::Done);
    assert_eq!(bed.effect_written(MAIL), "done|3");
}

async fn a_completion_is_heard_twice(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    bed.begin(&claimed, &key(MAIL)).await;
    assert_eq!(bed.complete(&claimed, &key(MAIL), Some("1")).await, Settled::Done);
    let done = bed.effect(MAIL).await;
    assert_eq!(bed.complete(&claimed, &key(MAIL), Some("2")).await, Settled::Done);
    assert_eq!(bed.abandon(&claimed, &key(MAIL)).await, Settled::NotBegun);
    bed.lose_leases().await;
    assert_eq!(bed.complete(&claimed, &key(MAIL), Some("3")).await, Settled::Done);
    assert_eq!(bed.effect(MAIL).await, done);
}

async fn a_late_completion_is_evidence(bed: Bed) {
    let route = billing(&bed).await;
    let late = bed.working_on("e1", &route).await;
    bed.begin(&late, &key(MAIL)).await;
    bed.pass(61);
    let lapsed = bed.effect(MAIL).await;
    assert_eq!(bed.complete(&late, &key(MAIL), Some(r#""ch_1""#)).await, Settled::Late);
    let effect = bed.effect(MAIL).await;
    let evidence = effect.evidence.clone().expect("it is kept");
    assert_eq!(evidence.result.as_deref(), Some(r#""ch_1""#));
    assert!(evidence.at >= lapsed.at);
    assert_eq!(effect, Effect { evidence: Some(evidence.clone()), ..lapsed });
    assert_eq!(bed.effect_written(MAIL), "started|0");

    bed.store.rescue(10).await.unwrap();
    let again = bed.take(&route).await;
    let mine = Begun::Yours { key: MAIL.into(), unknowns: 1, evidence: Some(evidence.clone()) };
    assert_eq!(bed.begin(&again, &key(MAIL)).await, mine);
    assert_eq!(bed.complete(&again, &key(MAIL), Some("2")).await, Settled::Done);
    let done = bed.effect(MAIL).await;
    assert_eq!((done.result.as_deref(), done.evidence), (Some("2"), Some(evidence)));
}

/// A zombie says that it did what somebody else is at, and then what somebody else has done.
async fn a_late_completion_changes_nothing_that_was_taken_over(bed: Bed) {
    let route = billing(&bed).await;
    let zombie = bed.working_on("e1", &route).await;
    bed.begin(&zombie, &key(MAIL)).await;
    bed.lose_leases().await;
    let again = bed.take(&route).await;
    bed.begin(&again, &key(MAIL)).await;
    let taken_over = bed.effect(MAIL).await;
    assert_eq!(bed.complete(&zombie, &key(MAIL), Some("1")).await, Settled::Late);
    let effect = bed.effect(MAIL).await;
    let said = |result: &str, effect: &Effect| Evidence {
        at: effect.evidence.as_ref().expect("it is kept").at,
        result: Some(result.into()),
    };
    let evidence = Some(said("1", &effect));
    assert_eq!(effect, Effect { evidence, ..taken_over });
    assert_eq!(bed.effect_written(MAIL), "started|1");

    assert_eq!(bed.complete(&again, &key(MAIL), Some("2")).await, Settled::Done);
    let done = bed.effect(MAIL).await;
    assert_eq!(bed.complete(&zombie, &key(MAIL), Some("3")).await, Settled::Late);
    let effect = bed.effect(MAIL).await;
    let evidence = Some(said("3", &effect));
    assert_eq!(effect, Effect { evidence, ..done });
    assert_eq!(effect.result.as_deref(), Some("2"));
}

async fn what_was_not_begun_is_not_completed(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    let second = bed.working_on("e2", &route).await;
    for name in [key(MAIL), step("charge")] {
        assert_eq!(bed.complete(&first, &name, None).await, Settled::NotBegun);
        assert_eq!(bed.abandon(&first, &name).await, Settled::NotBegun);
    }
    assert_eq!(bed.rows("effects"), 0);

    bed.begin(&first, &key(MAIL)).await;
    bed.complete(&first, &key(MAIL), Some("1")).await;
    let done = bed.effect(MAIL).await;
    let nobody = DeliveryId { receipt: ReceiptId::from_bytes([7; 16]), route: RouteNo(99) };
    let nobody = Under { delivery: nobody, lease: Lease(1) };
    for name in [key(MAIL), step("charge")] {
        let ended = bed.store.complete_effect(nobody, &name, Some("2")).await.unwrap();
        assert_eq!(ended, Settled::NotBegun);
        let ended = bed.store.abandon_effect(nobody, &name).await.unwrap();
        assert_eq!(ended, Settled::NotBegun);
    }
    for dead in [false, true] {
        if dead {
            bed.lose_leases().await;
        }
        assert_eq!(bed.complete(&second, &key(MAIL), Some("2")).await, Settled::NotBegun);
        assert_eq!(bed.abandon(&second, &key(MAIL)).await, Settled::NotBegun);
    }
    assert_eq!(bed.effect(MAIL).await, done);
}

async fn what_is_abandoned_may_be_begun_afresh(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    bed.begin(&first, &key(MAIL)).await;
    assert_eq!(bed.abandon(&first, &key(MAIL)).await, Settled::Done);
    assert_eq!(bed.rows("effects"), 0);
    assert_eq!(bed.abandon(&first, &key(MAIL)).await, Settled::NotBegun);
    assert_eq!(bed.complete(&first, &key(MAIL), None).await, Settled::NotBegun);
    let second = bed.working_on("e2", &route).await;
    assert_eq!(bed.begin(&second, &key(MAIL)).await, fresh(MAIL));
    assert_eq!(bed.effect(MAIL).await.delivery, second.delivery);
}

/// The second attempt knows that it did nothing; what the first did nobody knows still.
async fn what_is_abandoned_after_a_loss_is_unknown_again(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    bed.begin(&first, &key(MAIL)).await;
    bed.lose_leases().await;
    let again = bed.take(&route).await;
    bed.begin(&again, &key(MAIL)).await;
    assert_eq!(bed.abandon(&again, &key(MAIL)).await, Settled::Done);
    assert_eq!(bed.effect_written(MAIL), "unknown|1");
    let effect = bed.effect(MAIL).await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Unknown, 1));
    assert_eq!(bed.effects_in(EffectState::Unknown).await, 1);
    assert_eq!(bed.abandon(&again, &key(MAIL)).await, Settled::Done, "said again");

    let mine = Begun::Yours { key: MAIL.into(), unknowns: 1, evidence: None };
    assert_eq!(bed.begin(&again, &key(MAIL)).await, mine, "nothing more is unknown of it");
    assert_eq!(bed.complete(&again, &key(MAIL), None).await, Settled::Done);
    assert_eq!(bed.effect_written(MAIL), "done|1");
}

async fn a_late_abandonment_changes_nothing(bed: Bed) {
    let route = billing(&bed).await;
    let zombie = bed.working_on("e1", &route).await;
    bed.begin(&zombie, &key(MAIL)).await;
    bed.pass(61);
    let lapsed = bed.effect(MAIL).await;
    assert_eq!(bed.abandon(&zombie, &key(MAIL)).await, Settled::Late);
    assert_eq!(bed.effect(MAIL).await, lapsed);
    assert_eq!(bed.effect_written(MAIL), "started|0");

    bed.store.rescue(10).await.unwrap();
    let again = bed.take(&route).await;
    bed.begin(&again, &key(MAIL)).await;
    let taken_over = bed.effect(MAIL).await;
    assert_eq!(bed.abandon(&zombie, &key(MAIL)).await, Settled::Late);
    assert_eq!(bed.effect(MAIL).await, taken_over);
    assert_eq!(bed.abandon(&again, &key(MAIL)).await, Settled::Done);
    let left = bed.effect(MAIL).await;
    assert_eq!(bed.abandon(&zombie, &key(MAIL)).await, Settled::Late);
    assert_eq!(bed.effect(MAIL).await, left);
}

async fn without_a_lease_nothing_is_begun(bed: Bed) {
    let route = billing(&bed).await;
    let other = bed.route("audit", RouteRules::default()).await;
    let claimed = bed.working_on("e1", &route).await;
    let good = under(&claimed);
    let mut tail = *good.delivery.receipt.as_bytes();
    tail[15] ^= 1;
    let twin = ReceiptId::from_bytes(tail);
    let not_good = [
        Under { lease: Lease(good.lease.0 + 1), ..good },
        Under { lease: Lease(0), ..good },
        Under { delivery: other.of(good.delivery.receipt), ..good },
        Under { delivery: route.of(twin), ..good },
        Under { delivery: DeliveryId { route: RouteNo(99), ..good.delivery }, ..good },
    ];
    let begin = async |under| {
        for name in [key(MAIL), step("charge")] {
            for on_unknown in [OnUnknown::Retry, OnUnknown::Ask] {
                let begun = bed.store.begin_effect(under, &name, on_unknown).await.unwrap();
                assert_eq!(begun, Begun::LeaseLost, "{under:?}");
            }
        }
    };
    for under in not_good {
        begin(under).await;
    }
    bed.pass(61);
    begin(good).await;
    bed.store.rescue(10).await.unwrap();
    begin(good).await;
    let again = bed.take(&route).await;
    begin(good).await;
    assert!(bed.finish(&again, Next::Processed).await);
    begin(under(&again)).await;
    assert_eq!(bed.rows("effects"), 0);
}

/// Each of several deliveries wants every key: each key is begun by one, and busy to the others.
async fn one_of_many_begins(bed: Bed) {
    race(&bed, "race", 0).await;
}

/// The same for keys whose outcome is unknown.
async fn one_of_many_takes_over(bed: Bed) {
    let route = billing(&bed).await;
    let lost = bed.working_on("lost", &route).await;
    for n in 0..KEYS {
        bed.begin(&lost, &key(&format!("race:{n}"))).await;
    }
    assert!(bed.finish(&lost, Next::Dead).await);
    race(&bed, "race", 1).await;
}

const KEYS: usize = 10;
const RACERS: usize = 4;

async fn race(bed: &Bed, prefix: &str, unknowns: u32) {
    let route = billing(bed).await;
    let mut racers = Vec::new();
    for n in 0..RACERS {
        racers.push(bed.working_on(&format!("racer_{n}"), &route).await);
    }
    let names: Vec<EffectName> = (0..KEYS).map(|n| key(&format!("{prefix}:{n}"))).collect();
    let tasks = racers.iter().map(|claimed| {
        let (store, names, under) = (bed.store.clone(), names.clone(), under(claimed));
        tokio::spawn(async move {
            let mut begun = Vec::new();
            for name in &names {
                begun.push(store.begin_effect(under, name, OnUnknown::Retry).await.unwrap());
            }
            begun
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    for n in 0..KEYS {
        let of_key = all.iter().map(|begun| &begun[n]);
        let yours: Vec<_> = of_key.clone().filter(|b| matches!(b, Begun::Yours { .. })).collect();
        let key = format!("{prefix}:{n}");
        let expected = Begun::Yours { key: key.clone(), unknowns, evidence: None };
        assert_eq!(yours, [&expected]);
        let owner = bed.effect(&key).await;
        assert_eq!(owner.unknowns, unknowns);
        let busy = of_key.filter(|begun| **begun == Begun::Busy(owner.clone())).count();
        assert_eq!(busy, RACERS - 1);
    }
    let owners: HashSet<_> = racers.iter().map(|claimed| claimed.delivery).collect();
    assert_eq!(owners.len(), RACERS);
}

async fn bad_input_is_refused(bed: Bed) {
    let refused = |error: StoreError, remedy: &str| {
        assert!(matches!(&error, StoreError::Data(_)), "{error:?}");
        assert!(error.to_string().contains(remedy), "{error}");
    };
    let long = "r".repeat(500);
    let route = bed.route(&long, RouteRules::default()).await;
    let claimed = bed.working_on("e1", &route).await;
    let at = under(&claimed);
    let too_long = step(&"s".repeat(limits::KEY_BYTES));
    let reserved = key("outbox/mailer/m1");
    let of_step = key(&format!("{}/audit/charge", at.delivery.receipt));
    for (name, remedy) in [
        (&too_long, "choose shorter ones"),
        (&reserved, "choose another"),
        (&of_step, "name the step if it is one"),
    ] {
        refused(bed.store.begin_effect(at, name, OnUnknown::Retry).await.unwrap_err(), remedy);
        refused(bed.store.complete_effect(at, name, None).await.unwrap_err(), remedy);
        refused(bed.store.abandon_effect(at, name).await.unwrap_err(), remedy);
    }
    assert_eq!(bed.rows("effects"), 0);

    let longest = "k".repeat(limits::KEY_BYTES);
    assert_eq!(bed.begin(&claimed, &key(&longest)).await, fresh(&longest));
    let large = format!("\"{}\"", "x".repeat(limits::RESULT_BYTES - 1));
    let name = key(&longest);
    let error = bed.store.complete_effect(at, &name, Some(&large)).await.unwrap_err();
    refused(error, "record where it is");
    assert_eq!(bed.effect_written(&longest), "started|0");
    let largest = format!("\"{}\"", "x".repeat(limits::RESULT_BYTES - 2));
    assert_eq!(bed.complete(&claimed, &name, Some(&largest)).await, Settled::Done);
    assert_eq!(bed.effect(&longest).await.result, Some(largest));
}
