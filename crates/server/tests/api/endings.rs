//! What becomes of a delivery when its worker says what it made of it.

use oncebox::delivery::{Counts, Reason, State};
use oncebox::store::AttemptRow;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::Bed;
use serde_json::json;

use crate::bed::{Api, assert_problem, without};

for_each_store!(
    what_is_completed_is_processed,
    what_is_stale_is_skipped,
    what_failed_is_tried_again,
    what_failed_too_often_is_dead,
    what_failed_for_good_is_dead_at_once,
    what_comes_too_early_comes_back,
    hostile_texts_are_kept_and_cut,
    a_removed_route_still_hears_the_end,
);

async fn what_is_completed_is_processed(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    api.clock.advance_secs(2);

    let done = api.say(&claimed, "complete", json!({ "summary": "invoice 7 was booked" })).await;
    assert_eq!((done.status, done.json()), (200, json!({ "state": "processed" })));
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.state, row.reason), (State::Processed, None));
    assert_eq!(row.summary.as_deref(), Some("invoice 7 was booked"));
    assert_eq!(api.bed.rows("deliveries"), 0);
    let attempts = api.bed.store.attempts(receipt).await.unwrap();
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    assert_eq!(attempts[0].took.map(|took| took.as_millis()), Some(2000));

    let counted = r#"oncebox_attempts_total{route="billing",outcome="processed"}"#;
    assert_eq!(api.metric(counted).await, "1");

    // An answer can be lost: what ended the same way under the same lease is told as done.
    let again = api.say(&claimed, "complete", json!({ "summary": "twice" })).await;
    assert_eq!((again.status, again.json()), (200, json!({ "state": "processed" })));
    assert_eq!(api.metric(counted).await, "1");
    let other = api.say(&claimed, "fail", json!({ "class": "permanent" })).await;
    assert_problem(&other, 409, "lease_lost");
    assert_eq!(other.json()["state"], "processed");
    assert_eq!(api.row(receipt, "billing").await, row);
    assert_ne!(api.metric(r#"oncebox_leases_lost_total{route="billing"}"#).await, "0");
}

async fn what_is_stale_is_skipped(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let done = api.say(&claimed, "complete", json!({ "outcome": "stale" })).await;
    assert_eq!((done.status, done.json()), (200, json!({ "state": "skipped" })));
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.state, row.reason), (State::Skipped, Some(Reason::Stale)));
}

async fn what_failed_is_tried_again(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;

    let more = json!({ "reason": "the customer is not there yet", "retry_after": "90s" });
    let failed = api.say(&claimed, "fail", more).await;
    assert_eq!(failed.json(), json!({ "state": "retrying", "due_in_ms": 90_000 }));
    let row = api.row(receipt, "billing").await;
    assert_eq!(row.state, State::Retrying);
    let tried = row.counts.tried;
    assert_eq!(row.counts, Counts { attempts: 1, failures: 1, tried, ..Counts::default() });
    assert_eq!(row.detail.as_deref(), Some("the customer is not there yet"));
    assert_eq!(api.claim("billing", &json!({})).await.len(), 0, "it is not due yet");
    // Said again, as when the answer was lost: the first time stands.
    let again = api.say(&claimed, "fail", json!({ "retry_after": "5s" })).await;
    assert_eq!((again.status, again.json()), (200, json!({ "state": "retrying" })));
    assert_eq!(api.row(receipt, "billing").await, row);
    let counted = r#"oncebox_attempts_total{route="billing",outcome="retry"}"#;
    assert_eq!(api.metric(counted).await, "1");

    api.bed.pass(91);
    let claimed = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    assert_eq!(claimed["attempt"], 2);
    // Without a time of the worker's own, the pause is between half and all of the route's.
    let failed = api.say(&claimed, "fail", json!({ "class": "transient" })).await.json();
    let pause = failed["due_in_ms"].as_u64().unwrap();
    assert!((20_000..=40_000).contains(&pause), "{failed}");
    let attempts = api.bed.store.attempts(receipt).await.unwrap();
    let told = |row: &AttemptRow| (row.number, row.outcome.clone());
    let reason = "the customer is not there yet";
    let retries = format!(r#"oncebox_retries_total{{route="billing",reason="{reason}"}}"#);
    assert_eq!(api.metric(&retries).await, "1");
    let told: Vec<_> = attempts.iter().map(told).collect();
    assert_eq!(told, [(1, "retry".to_owned()), (2, "retry".to_owned())]);
}

async fn what_failed_too_often_is_dead(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    for expected in ["retrying", "retrying", "dead"] {
        let claimed = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
        let failed = api.say(&claimed, "fail", json!({ "reason": "no" })).await;
        assert_eq!(failed.json()["state"], expected, "{}", failed.text());
        api.bed.pass(41);
    }
    let row = api.row(receipt, "billing").await;
    assert_eq!(row.state, State::Dead);
    let tried = row.counts.tried;
    assert_eq!(row.counts, Counts { attempts: 3, failures: 3, tried, ..Counts::default() });
    assert_eq!(api.bed.store.attempts(receipt).await.unwrap().len(), 3);
}

async fn what_failed_for_good_is_dead_at_once(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let more = json!({ "class": "permanent", "reason": "no such currency" });
    let failed = api.say(&claimed, "fail", more).await;
    assert_eq!((failed.status, failed.json()), (200, json!({ "state": "dead" })));
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.state, row.detail.as_deref()), (State::Dead, Some("no such currency")));
}

/// A snooze is no failure. It is counted apart, and has an end.
async fn what_comes_too_early_comes_back(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    for snoozes in 1..=2 {
        let claimed = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
        let more = json!({ "snooze": "10m", "reason": "the shop is closed" });
        let snoozed = api.say(&claimed, "fail", more).await;
        assert_eq!(snoozed.json(), json!({ "state": "retrying", "due_in_ms": 600_000 }));
        let counts = api.row(receipt, "billing").await.counts;
        assert_eq!(counts, Counts { attempts: snoozes, snoozes, ..Counts::default() });
        api.bed.pass(601);
    }
    let claimed = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    let snoozed = api.say(&claimed, "fail", json!({ "snooze": "1s" })).await;
    assert_eq!(snoozed.json(), json!({ "state": "dead" }));
}

async fn hostile_texts_are_kept_and_cut(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let summary = format!("a\0b\u{202e}{}", "ü".repeat(2000));
    let done = api.say(&claimed, "complete", json!({ "summary": summary })).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let kept = api.row(receipt, "billing").await.summary.unwrap();
    assert!(kept.starts_with("ab\u{202e}ü"), "{kept}");
    assert!(kept.len() <= oncebox::limits::DETAIL_BYTES);
}

/// The work was done; refusing to hear of it would only have it done again.
async fn a_removed_route_still_hears_the_end(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let delivery = api.route("billing").of(receipt);
    let claimed = api.take("billing").await;
    api.server.reload(without("routes.billing")).await.unwrap();

    let gone = api.post("/routes/billing/claim", &json!({})).await;
    assert_problem(&gone, 404, "not_found");
    let done = api.say(&claimed, "complete", json!({})).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(api.bed.delivery(delivery).await.state, State::Processed);
}
