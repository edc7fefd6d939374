//! Calls to the outside: made once as far as anybody can, and unknown where nobody knows.

use oncebox::effect::{EffectState, OnUnknown, Verdict};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, act};

use crate::bed::{Answer, Op, Outside, Service, mark};

for_each_store!(
    a_call_is_made_once_for_the_business,
    a_call_without_an_answer_is_made_again_under_its_key,
    a_call_that_was_refused_is_as_if_never_made,
    a_call_without_an_answer_may_wait_for_a_person,
    a_person_may_say_that_it_did_not_happen,
);

fn refund(on_unknown: OnUnknown, answer: Answer) -> Op {
    Op::Call(Outside { key: "refund:ch_1", is_step: false, on_unknown, answer })
}

/// Two events tell of the same refund; its result is there for both.
async fn a_call_is_made_once_for_the_business(bed: Bed) {
    let plan = [refund(OnUnknown::Retry, Answer::Done(12)), mark("told")];
    let service = Service::open(bed, move |_| plan.to_vec()).await;
    for id in ["e1", "e2"] {
        service.due(&[id]).await;
        service.work().await;
    }
    assert_eq!(service.marks(), ["told", "told"]);
    let expected = [
        "called refund:ch_1, 0 unknown",
        "refund:ch_1 came to 12",
        "e1 processed",
        "refund:ch_1 came to 12",
        "e2 processed",
    ];
    assert_eq!(service.notes(), expected);
    let effect = service.bed.effect("refund:ch_1").await;
    assert_eq!((effect.state, effect.conflicts), (EffectState::Done, 1));
    assert_eq!(effect.result.as_deref(), Some("12"));
}

async fn a_call_without_an_answer_is_made_again_under_its_key(bed: Bed) {
    let service = Service::open(bed, |event| {
        let answer = if event.attempt == 1 { Answer::Silence } else { Answer::Done(12) };
        vec![refund(OnUnknown::Retry, answer), mark("refunded")]
    })
    .await;
    service.due(&["e1"]).await;
    service.work().await;
    assert_eq!(service.bed.effect("refund:ch_1").await.state, EffectState::Unknown);
    assert_eq!(service.marks(), [""; 0]);
    service.work_later().await;
    assert_eq!(service.marks(), ["refunded"]);
    let effect = service.bed.effect("refund:ch_1").await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Done, 1));
    let expected = [
        "called refund:ch_1, 0 unknown",
        "e1 retry",
        "called refund:ch_1, 1 unknown",
        "refund:ch_1 came to 12",
        "e1 processed",
    ];
    assert_eq!(service.notes(), expected);
}

async fn a_call_that_was_refused_is_as_if_never_made(bed: Bed) {
    let service = Service::open(bed, |event| {
        let answer = if event.attempt == 1 { Answer::Refusal } else { Answer::Done(12) };
        vec![refund(OnUnknown::Ask, answer)]
    })
    .await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    assert_eq!(service.detail(receipts[0]).await, "refused");
    assert_eq!(service.bed.rows("effects"), 0);
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.bed.effect("refund:ch_1").await.unknowns, 0);
}

/// A service whose refund was called and did not answer, and asks what became of it.
async fn parked(bed: Bed) -> Service {
    let service = Service::open(bed, |event| {
        let silent = event.attempt == 1;
        let answer = if silent { Answer::Silence } else { Answer::Done(12) };
        vec![refund(OnUnknown::Ask, answer), mark("refunded")]
    })
    .await;
    service.due(&["e1"]).await;
    service.work().await;
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 held:unknown-effect"]);
    assert_eq!(service.marks(), [""; 0]);
    let expected = ["called refund:ch_1, 0 unknown", "e1 retry", "e1 parked"];
    assert_eq!(service.notes(), expected);
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 held:unknown-effect"]);
    service
}

async fn a_call_without_an_answer_may_wait_for_a_person(bed: Bed) {
    let service = parked(bed).await;
    let verdict = Verdict::Done { result: Some("11".into()) };
    let why = act("found it in the dashboard");
    service.bed.store.settle_effect("refund:ch_1", &verdict, &why).await.unwrap();
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["refunded"]);
    assert_eq!(service.notes(), ["refund:ch_1 came to 11", "e1 processed"]);
}

async fn a_person_may_say_that_it_did_not_happen(bed: Bed) {
    let service = parked(bed).await;
    let why = act("nothing in the dashboard");
    service.bed.store.settle_effect("refund:ch_1", &Verdict::NotDone, &why).await.unwrap();
    service.work().await;
    assert_eq!(service.marks(), ["refunded"]);
    let expected = ["called refund:ch_1, 0 unknown", "refund:ch_1 came to 12", "e1 processed"];
    assert_eq!(service.notes(), expected);
}
