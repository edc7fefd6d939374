//! Stages of a delivery: a retry goes on where the last attempt got to.

use oncebox::effect::OnUnknown;
use oncebox::handler::Decision;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::Bed;

use crate::bed::{Answer, Op, Outside, Service, mark};

for_each_store!(
    stages_that_were_committed_are_skipped,
    stages_that_were_taken_back_are_run_again,
    calls_that_were_made_are_not_made_again,
    steps_are_of_one_delivery,
    a_result_needs_its_step,
);

/// Stage 3 of 3 fails twice; the handler keeps what it has by deciding so.
async fn stages_that_were_committed_are_skipped(bed: Bed) {
    let service = Service::open(bed, |event| {
        let mut plan = vec![Op::Step("reserve", 7), Op::Step("charge", 8)];
        match event.attempt {
            1 | 2 => plan.push(Op::Decide(Decision::retry("the shipper does not answer"))),
            _ => plan.push(Op::Step("ship", 9)),
        }
        plan
    })
    .await;
    service.due(&["e1"]).await;
    for _ in 0..3 {
        service.work_later().await;
    }
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["charge", "reserve", "ship"]);
    let expected = [
        "e1 retry",
        "reserve came to 7",
        "charge came to 8",
        "e1 retry",
        "reserve came to 7",
        "charge came to 8",
        "e1 processed",
    ];
    assert_eq!(service.notes(), expected);
}

/// An error takes back its stages, and what they wrote.
async fn stages_that_were_taken_back_are_run_again(bed: Bed) {
    let service = Service::open(bed, |event| {
        let mut plan = vec![Op::Step("reserve", 7), Op::Step("charge", 8)];
        if event.attempt < 3 {
            plan.push(Op::Fail("the shipper does not answer"));
        }
        plan
    })
    .await;
    service.due(&["e1"]).await;
    for _ in 0..3 {
        service.work_later().await;
    }
    assert_eq!(service.marks(), ["charge", "reserve"]);
    assert_eq!(service.notes(), ["e1 retry", "e1 retry", "e1 processed"]);
}

/// Stages 1 and 2 are calls to the outside, stage 3 fails twice.
async fn calls_that_were_made_are_not_made_again(bed: Bed) {
    let call = |key, answer| {
        Op::Call(Outside { key, is_step: true, on_unknown: OnUnknown::Retry, answer })
    };
    let service = Service::open(bed, move |event| {
        let last = if event.attempt < 3 { Answer::Refusal } else { Answer::Done(9) };
        let calls = [("reserve", Answer::Done(7)), ("charge", Answer::Done(8)), ("ship", last)];
        let mut plan: Vec<Op> = calls.map(|(key, answer)| call(key, answer)).into();
        plan.push(mark("shipped"));
        plan
    })
    .await;
    service.due(&["e1"]).await;
    for _ in 0..3 {
        service.work_later().await;
    }
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["shipped"]);
    let notes = service.notes();
    let made = |key: &str| notes.iter().filter(|n| n.starts_with(&format!("called {key}"))).count();
    assert_eq!((made("reserve"), made("charge"), made("ship")), (1, 1, 3));
    assert_eq!(notes.iter().filter(|note| *note == "charge came to 8").count(), 3);
    assert!(!notes.iter().any(|note| note.ends_with("1 unknown")), "{notes:?}");
}

async fn steps_are_of_one_delivery(bed: Bed) {
    let service = Service::open(bed, |_| vec![Op::Step("reserve", 7)]).await;
    service.due(&["e1", "e2"]).await;
    service.work().await;
    assert_eq!(service.marks(), ["reserve", "reserve"]);
}

async fn a_result_needs_its_step(bed: Bed) {
    let service = Service::open(bed, |_| vec![Op::SetResult("reserve")]).await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    let detail = service.detail(receipts[0]).await;
    assert!(detail.contains("`reserve` cannot be recorded"), "{detail}");
}
