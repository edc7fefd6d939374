//! `ack = "processed"`: the provider hears what became of its event.

use std::time::Duration;

use oncebox::delivery::{Reason, State};
use oncebox_testkit::destination::Behaviour;
use oncebox_testkit::http::Answer;
use oncebox_testkit::store::until;

use crate::bed::{Bed, Place, QUICK, event, json, receipt, signed};

/// Far more patience than a test needs.
const PATIENT: &str = "ack = \"processed\"\nack_timeout = \"20s\"\n";

const IMPATIENT: &str = "ack = \"processed\"\nack_timeout = \"300ms\"\n";

macro_rules! on_each_store {
    ($($story:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $story() { super::$story(super::Place::sqlite()).await; })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $story() { super::$story(super::Place::postgres().await).await; })*
        }
    };
}

on_each_store! {
    the_outcome_is_the_answer,
    a_failed_attempt_is_a_503_and_the_retry_goes_on,
    a_conflict_that_is_held_is_answered_at_once,
    nobody_waits_longer_than_the_source_says,
    a_copy_joins_what_is_under_way,
    a_copy_makes_the_retry_due_once_per_base,
    a_copy_hears_of_the_dead_and_does_not_wake_it,
    after_three_attempts_the_provider_may_stop,
}

fn status(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    json(answer)["status"].as_str().unwrap().to_owned()
}

fn assert_not_yet(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.body, br#"{"error":"not_processed"}"#);
    let after: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!(after > 0);
}

async fn the_outcome_is_the_answer(place: Place) {
    let bed = Bed::on(place, PATIENT, QUICK).await;
    let answer = bed.post(event("evt_1")).await;
    assert_eq!(status(&answer), "processed");
    assert_eq!(bed.delivery(receipt(&answer)).await.state, State::Processed);

    bed.destination.next(Behaviour::status(422));
    let answer = bed.post(event("evt_2")).await;
    assert_eq!(status(&answer), "dead");
    assert_eq!(bed.delivery(receipt(&answer)).await.state, State::Dead);

    bed.destination.next(Behaviour::answer(200, &[("Oncebox-Outcome", "stale")]));
    let answer = bed.post(event("evt_3")).await;
    assert_eq!(status(&answer), "skipped");
    assert_eq!(bed.delivery(receipt(&answer)).await.reason, Some(Reason::Stale));

    for (id, word) in [("evt_1", "processed"), ("evt_2", "dead"), ("evt_3", "skipped")] {
        assert_eq!(status(&bed.post(event(id)).await), word, "a copy of {id}");
    }
    assert_eq!(bed.destination.requests().len(), 3, "no copy was pushed");
    assert_eq!(
        bed.metric("oncebox_received_total{source=\"stripe\",outcome=\"duplicate\"}").await,
        Some(3.0)
    );
}

async fn a_failed_attempt_is_a_503_and_the_retry_goes_on(place: Place) {
    let bed = Bed::on(place, PATIENT, &format!("{QUICK}timeout = \"4s\"\n")).await;
    bed.destination.next(Behaviour::status(500));
    // The retry could be quicker than the answer, which would tell of it then.
    bed.destination.next(Behaviour::Hang);
    let began = std::time::Instant::now();
    assert_not_yet(&bed.post(event("evt_1")).await);
    assert!(began.elapsed() < Duration::from_secs(15), "it was told at once");
    // Our own schedule brings it through, and the provider's retry hears of it.
    bed.destination.wait_for(3);
    assert_eq!(status(&bed.post(event("evt_1")).await), "processed");
    assert_eq!(bed.destination.requests().len(), 3);
}

/// The same id with another body is taken for the event, so it waits for it as well.
/// An operator decides about it, which no sender waits for.
async fn a_conflict_that_is_held_is_answered_at_once(place: Place) {
    let retry = "allow_private = true\nretry = { max_attempts = 9, base = \"1h\", cap = \"1h\" }\n";
    let bed = Bed::on(place, IMPATIENT, retry).await;
    bed.destination.always(Behaviour::status(500));
    assert_not_yet(&bed.post(event("evt_1")).await);
    let mut other = event("evt_1");
    other.body.push(b' ');
    let answer = bed.post(signed(other)).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(json(&answer)["note"], "conflict");
    let held = bed.delivery(receipt(&answer)).await;
    assert_eq!((held.state, held.reason), (State::Held, Some(Reason::Conflict)));
}

async fn nobody_waits_longer_than_the_source_says(place: Place) {
    let bed = Bed::on(place, IMPATIENT, &format!("{QUICK}timeout = \"2s\"\n")).await;
    bed.destination.next(Behaviour::Hang);
    let answer = bed.post(event("evt_1")).await;
    assert_not_yet(&answer);
    let row = bed.until(bed.only_receipt().await, State::Processed).await;
    assert_eq!(row.counts.attempts, 2, "it was recorded, and delivered all the same");
}

async fn a_copy_joins_what_is_under_way(place: Place) {
    let bed = Bed::on(place, PATIENT, &format!("{QUICK}timeout = \"1s\"\n")).await;
    bed.destination.next(Behaviour::Hang);
    let first = bed.post(event("evt_1"));
    let copy = async {
        bed.destination.wait_for(1);
        bed.post(event("evt_1")).await
    };
    let (first, copy) = tokio::join!(first, copy);
    assert_not_yet(&first);
    assert_not_yet(&copy);
    let receipt = bed.only_receipt().await;
    let row = bed.until(receipt, State::Processed).await;
    assert_eq!(row.counts.attempts, 2, "the copy began no attempt of its own");
}

async fn a_copy_makes_the_retry_due_once_per_base(place: Place) {
    // Left alone, the retry would come in hours.
    let route = "allow_private = true\n\
                 retry = { max_attempts = 5, base = \"1h\", cap = \"2h\" }\n";
    let bed = Bed::on(place, IMPATIENT, route).await;
    let later = Behaviour::answer(503, &[("Retry-After", "7200")]);
    bed.destination.next(later.clone());
    assert_not_yet(&bed.post(event("evt_1")).await);
    let receipt = bed.only_receipt().await;
    assert_eq!(bed.until(receipt, State::Retrying).await.counts.attempts, 1);

    // The first copy makes it due now, and hears that it failed again.
    bed.destination.next(later);
    assert_not_yet(&bed.post(event("evt_1")).await);
    bed.until_it(receipt, "the second attempt ended", |row| {
        row.state == State::Retrying && row.counts.attempts == 2
    })
    .await;

    // The second copy comes within `base`: it is not swallowed, and hastens nothing.
    assert_not_yet(&bed.post(event("evt_1")).await);
    let row = bed.delivery(receipt).await;
    assert_eq!((row.state, row.counts.attempts), (State::Retrying, 2));
    assert_eq!(bed.destination.requests().len(), 2);
}

async fn a_copy_hears_of_the_dead_and_does_not_wake_it(place: Place) {
    let bed = Bed::on(place, PATIENT, QUICK).await;
    bed.destination.always(Behaviour::status(500));
    assert_not_yet(&bed.post(event("evt_1")).await);
    let receipt = bed.only_receipt().await;
    let row = bed.until(receipt, State::Dead).await;
    assert_eq!(row.counts.attempts, 3);
    assert_eq!(status(&bed.post(event("evt_1")).await), "dead");
    assert_eq!(bed.destination.requests().len(), 3);
}

/// Three attempts fail, each with a 503. Then the event is ours, and the provider hears so.
async fn after_three_attempts_the_provider_may_stop(place: Place) {
    let retry =
        "allow_private = true\nretry = { max_attempts = 9, base = \"1ms\", cap = \"1h\" }\n";
    let bed = Bed::on(place, PATIENT, retry).await;
    let later = Behaviour::answer(503, &[("Retry-After", "3600")]);
    bed.destination.always(later);
    for attempt in 1..=3 {
        assert_not_yet(&bed.post(event("evt_1")).await);
        let receipt = bed.only_receipt().await;
        bed.until_it(receipt, "the attempt ended", |row| {
            row.state == State::Retrying && row.counts.attempts == attempt
        })
        .await;
    }
    assert_eq!(status(&bed.post(event("evt_1")).await), "retrying");
    assert_eq!(bed.destination.requests().len(), 3, "the copy hastened nothing");
}

/// The default stays: an answer once the event is recorded, whatever becomes of it.
#[tokio::test(flavor = "multi_thread")]
async fn unless_asked_nobody_waits() {
    let bed = Bed::new(&format!("{QUICK}timeout = \"1s\"\n")).await;
    bed.destination.next(Behaviour::Hang);
    let answer = bed.post(event("evt_1")).await;
    assert_eq!(answer.status, 202);
    bed.destination.always(Behaviour::status(500));
    bed.until(receipt(&answer), State::Dead).await;
    let copy = bed.post(event("evt_1")).await;
    assert_eq!(status(&copy), "duplicate", "kept, and ours to deliver");
}

/// A type that the route does not take is recorded, and there is nothing to wait for.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_route_takes_is_answered_when_recorded() {
    let route = format!("{QUICK}events = [\"customer.*\"]\n");
    let bed = Bed::on(Place::sqlite(), PATIENT, &route).await;
    assert_eq!(bed.post(event("evt_1")).await.status, 202);
    assert_eq!(status(&bed.post(event("evt_1")).await), "duplicate");
}

/// A destination that hangs must not cost other sources the memory for their bodies.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_takes_no_memory_from_others() {
    let bed = Bed::on(Place::sqlite(), PATIENT, &format!("{QUICK}timeout = \"2s\"\n")).await;
    let memory = bed.server.inbox.memory.clone();
    let all = memory.available_permits();
    // Always: a retry that got through would be answered 200.
    bed.destination.always(Behaviour::Hang);
    let waiting = bed.post(event("evt_1"));
    tokio::pin!(waiting);
    let free = async {
        bed.destination.wait_for(1);
        until(|| memory.available_permits() == all).await;
    };
    tokio::select! {
        biased;
        answer = &mut waiting => panic!("{answer:?}, and until then nothing was given back"),
        () = free => {}
    }
    assert_not_yet(&waiting.await);
}
