//! What answers mean, down to the store.

use oncebox::delivery::{Reason, State};
use oncebox_testkit::destination::Behaviour;

use crate::bed::{Bed, QUICK};

#[tokio::test(flavor = "multi_thread")]
async fn every_2xx_is_processed() {
    let bed = Bed::new(QUICK).await;
    for status in [200, 201, 202, 204] {
        let summary = format!("did {status}");
        bed.destination.next(Behaviour::answer(status, &[("Oncebox-Summary", &summary)]));
        let receipt = bed.send(&format!("evt_{status}")).await;
        let row = bed.until(receipt, State::Processed).await;
        assert_eq!(row.summary, Some(summary));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn permanent_statuses_are_dead_at_once() {
    let bed = Bed::new(QUICK).await;
    for status in [400, 410, 413, 415, 422] {
        bed.destination.next(Behaviour::status(status));
        let receipt = bed.send(&format!("evt_{status}")).await;
        let row = bed.until(receipt, State::Dead).await;
        assert_eq!(row.counts.attempts, 1, "{status}");
        assert!(row.detail.unwrap().contains(&status.to_string()));
        assert_eq!(bed.attempts(receipt).await[0].status, Some(status));
    }
    assert_eq!(bed.destination.requests().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_may_name_its_own_permanent_statuses() {
    let bed = Bed::new(&format!("{QUICK}permanent = [404]\n")).await;
    bed.destination.next(Behaviour::status(404));
    let gone = bed.send("evt_1").await;
    assert_eq!(bed.until(gone, State::Dead).await.counts.attempts, 1);
    bed.destination.next(Behaviour::status(400));
    let again = bed.send("evt_2").await;
    assert_eq!(bed.until(again, State::Processed).await.counts.attempts, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_else_is_tried_until_the_attempts_are_spent() {
    for status in [301, 401, 404, 409, 429, 500, 503] {
        let bed = Bed::new(QUICK).await;
        bed.destination.always(Behaviour::status(status));
        let receipt = bed.send("evt_1").await;
        let row = bed.until(receipt, State::Dead).await;
        assert_eq!((row.counts.attempts, row.counts.failures), (3, 3), "{status}");
        assert_eq!(bed.attempts(receipt).await.len(), 3, "the whole history");
        assert_eq!(bed.destination.requests().len(), 3, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured() {
    let bed = Bed::new(QUICK).await;
    let date = crate::bed::now() + jiff::SignedDuration::from_hours(2);
    let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for (value, least) in [("7200", 7100), (date.as_str(), 7100)] {
        bed.destination.next(Behaviour::answer(503, &[("Retry-After", value)]));
        let receipt = bed.send(&format!("evt_{value}")).await;
        let row = bed.until(receipt, State::Retrying).await;
        let pause = row.due_at.unwrap().duration_since(crate::bed::now()).as_secs();
        assert!((least..=7200).contains(&pause), "{value}: {pause}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_consumer_may_say_what_came_of_it() {
    let bed = Bed::new(QUICK).await;
    let said = |status, word| Behaviour::answer(status, &[("Oncebox-Outcome", word)]);

    bed.destination.next(said(500, "processed"));
    let processed = bed.send("evt_1").await;
    assert_eq!(bed.until(processed, State::Processed).await.counts.attempts, 1);

    bed.destination.next(said(200, "stale"));
    let stale = bed.send("evt_2").await;
    assert_eq!(bed.until(stale, State::Skipped).await.reason, Some(Reason::Stale));
    assert_eq!(bed.metric("oncebox_stale_total{route=\"app\"}").await, Some(1.0));

    bed.destination.next(said(200, "dead"));
    let dead = bed.send("evt_3").await;
    assert_eq!(bed.until(dead, State::Dead).await.counts.attempts, 1);

    bed.destination.next(said(200, "retry"));
    let again = bed.send("evt_4").await;
    let row = bed.until(again, State::Processed).await;
    assert_eq!((row.counts.attempts, row.counts.failures), (2, 1));

    bed.destination
        .next(Behaviour::answer(200, &[("Oncebox-Outcome", "snooze"), ("Retry-After", "0")]));
    let later = bed.send("evt_5").await;
    let row = bed.until(later, State::Processed).await;
    assert_eq!((row.counts.attempts, row.counts.failures, row.counts.snoozes), (2, 0, 1));
}

/// An event that builds on another which has not come yet.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_comes_too_early_says_why_it_waits() {
    let bed = Bed::new(QUICK).await;
    let early = [
        ("Oncebox-Outcome", "retry"),
        ("Oncebox-Reason", "no customer yet"),
        ("Retry-After", "3600"),
    ];
    bed.destination.next(Behaviour::answer(409, &early));
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Retrying).await;
    assert_eq!(row.detail.as_deref(), Some("no customer yet"));
    assert_eq!(bed.attempts(receipt).await[0].detail.as_deref(), Some("no customer yet"));
    let line = "oncebox_retries_total{route=\"app\",reason=\"no customer yet\"}";
    assert_eq!(bed.metric(line).await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn snoozes_have_an_end() {
    let bed = Bed::new(&format!("{QUICK}max_snoozes = 2\n")).await;
    let snooze = [("Oncebox-Outcome", "snooze"), ("Retry-After", "0")];
    bed.destination.always(Behaviour::answer(200, &snooze));
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    assert_eq!((row.counts.attempts, row.counts.snoozes), (3, 2));
}
