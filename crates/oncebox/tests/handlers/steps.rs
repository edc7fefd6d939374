//! Stages of a delivery: a retry goes on where the last attempt got to.

use oncebox::effect::OnUnknown;
use oncebox::handler::Decision;
use oncebox::route::RouteRules;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, key};

use crate::bed::{Answer, Op, Outside, Service, StageEnd, mark};

for_each_store!(
    stages_that_were_committed_are_skipped,
    stages_that_were_taken_back_are_run_again,
    calls_that_were_made_are_not_made_again,
    only_the_stage_that_failed_is_undone,
    a_stage_that_can_never_succeed_ends_the_delivery,
    a_stage_that_was_left_takes_everything_back,
    a_stage_that_meets_somebody_takes_everything_back,
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

/// Stage 3 of 3 fails in the middle, by its own word and by a statement.
async fn only_the_stage_that_failed_is_undone(bed: Bed) {
    let service = Service::open(bed, |event| {
        let last = match event.attempt {
            1 => StageEnd::Says,
            2 => StageEnd::Statement,
            _ => StageEnd::Done(9),
        };
        let ends = [("reserve", StageEnd::Done(7)), ("charge", StageEnd::Done(8)), ("ship", last)];
        ends.map(|(name, end)| Op::Stage(name, end)).into()
    })
    .await;
    let receipts = service.due(&["e1"]).await;
    let first = ["reserve runs", "reserve came to 7", "charge runs", "charge came to 8"];
    let again = ["reserve came to 7", "charge came to 8"];
    for (attempt, before, why) in
        [(1, &first[..], "the shipper does not answer"), (2, &again[..], "nowhere")]
    {
        service.work_later().await;
        assert_eq!(service.notes(), [before, &["ship runs", "e1 retry"]].concat());
        assert_eq!(service.states().await, ["e1 retrying"]);
        assert_eq!(service.marks(), ["charge", "reserve"]);
        assert_eq!(service.bed.rows("effects"), 2);
        let row = service.bed.delivery(service.route.of(receipts[0])).await;
        assert_eq!((row.counts.failures, row.counts.snoozes), (attempt, 0));
        assert!(row.detail.as_deref().is_some_and(|detail| detail.contains(why)), "{row:?}");
    }
    service.work_later().await;
    let last = ["ship runs", "ship came to 9", "e1 processed"];
    assert_eq!(service.notes(), [&again[..], &last].concat());
    assert_eq!(service.marks(), ["charge", "reserve", "ship"]);
    for (stage, attempt, result) in [("reserve", 1, "7"), ("charge", 1, "8"), ("ship", 3, "9")] {
        let effect = service.bed.effect(&format!("{}/billing/{stage}", receipts[0])).await;
        assert_eq!((effect.attempt, effect.result.as_deref()), (attempt, Some(result)), "{stage}");
    }
}

/// Half of it is written, and the handler goes on as if it could keep that.
async fn a_stage_that_was_left_takes_everything_back(bed: Bed) {
    let service = Service::open(bed, |event| match event.attempt {
        1 => vec![Op::Stage("reserve", StageEnd::Done(7)), Op::CutStage("ship")],
        _ => vec![Op::Stage("reserve", StageEnd::Done(7)), Op::Stage("ship", StageEnd::Done(9))],
    })
    .await;
    let receipts = service.due(&["e1"]).await;
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 retrying"]);
    assert_eq!((service.marks(), service.bed.rows("effects")), (vec![], 0));
    let why = service.detail(receipts[0]).await;
    assert!(why.contains("a stage of `run_step` was cut short"), "{why}");
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["reserve", "ship"]);
}

async fn a_stage_that_can_never_succeed_ends_the_delivery(bed: Bed) {
    let service = Service::open(bed, |_| {
        vec![Op::Stage("reserve", StageEnd::Done(7)), Op::Stage("ship", StageEnd::Dead)]
    })
    .await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 dead"]);
    assert_eq!(service.detail(receipts[0]).await, "there is no shipper");
    assert_eq!(service.marks(), ["reserve"]);
}

/// What is in its way may need a person, so the delivery cannot end as the stage did.
async fn a_stage_that_meets_somebody_takes_everything_back(bed: Bed) {
    let other = bed.route("refunds", RouteRules::default()).await;
    let other = bed.working_on("a1", &other).await;
    bed.begin(&other, &key("refund:ch_1")).await;
    let service = Service::open(bed, |_| {
        let needs = StageEnd::Needs("refund:ch_1");
        vec![Op::Stage("reserve", StageEnd::Done(7)), Op::Stage("ship", needs)]
    })
    .await;
    service.due(&["e1"]).await;
    service.work().await;
    assert_eq!((service.marks(), service.bed.rows("effects")), (Vec::new(), 1));
    assert_eq!(service.notes().last().unwrap(), "e1 snooze");
    service.bed.lose_leases().await;
    service.hurry();
    service.work().await;
    assert_eq!(service.notes().last().unwrap(), "e1 parked");
    assert_eq!(service.states().await, ["e1 held:unknown-effect"]);
    assert_eq!((service.marks(), service.bed.rows("effects")), (Vec::new(), 1));
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
