//! Completing many deliveries in one request: each entry stands for itself.

use std::sync::Arc;

use oncebox::delivery::State;
use oncebox::receipt::ReceiptId;
use oncebox_testkit::for_each_store;
use oncebox_testkit::http::Answer;
use oncebox_testkit::store::Bed;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bed::{Api, assert_problem, without};

for_each_store!(
    a_whole_batch_is_processed,
    entries_stand_for_themselves,
    what_another_route_has_is_not_told,
    a_batch_that_is_wrong_changes_nothing,
    a_batch_that_is_said_again_is_counted_once,
    a_removed_route_still_hears_of_a_batch,
    batches_that_meet_end_each_delivery_once,
);

const PROCESSED: &str = r#"oncebox_attempts_total{route="billing",outcome="processed"}"#;

/// Records so many events for `billing`, and claims them in their order.
async fn claimed(api: &Api, count: usize) -> (Vec<ReceiptId>, Vec<Value>) {
    let event = |number| api.bed.event(&format!("evt_{number}"), &[api.route("billing")]);
    let events: Vec<_> = (0..count).map(event).collect();
    let receipts = events.iter().map(|event| event.receipt).collect();
    api.bed.record(events).await;
    let claimed = api.claim("billing", &json!({ "max": 256, "lease": "60s" })).await;
    assert_eq!(claimed.len(), count);
    (receipts, claimed)
}

/// An entry of a batch for what was claimed.
fn entry(claimed: &Value, more: Value) -> Value {
    let mut entry = more;
    entry["delivery"] = claimed["delivery"].clone();
    entry["lease"] = claimed["lease"].clone();
    entry
}

fn entries(claimed: &[Value]) -> Vec<Value> {
    claimed.iter().map(|one| entry(one, json!({}))).collect()
}

async fn complete(api: &Api, route: &str, entries: &[Value]) -> Answer {
    api.post(&format!("/routes/{route}/complete"), &json!({ "deliveries": entries })).await
}

/// What was said of each entry.
#[track_caller]
fn told(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()["deliveries"].as_array().unwrap().clone()
}

/// Asserts that an entry has the same problem as a request of its own would have.
#[track_caller]
fn assert_error(told: &Value, status: u16, code: &str) {
    let error = &told["error"];
    assert_eq!((&error["status"], &error["code"]), (&json!(status), &json!(code)), "{told}");
    assert_eq!(error["type"], "about:blank", "{told}");
    assert!(!error["title"].as_str().unwrap().is_empty(), "{told}");
    assert!(!error["detail"].as_str().unwrap().is_empty(), "{told}");
    assert_eq!(told.get("state"), None, "{told}");
}

async fn a_whole_batch_is_processed(bed: Bed) {
    let api = Api::start(bed).await;
    let (_, claimed) = claimed(&api, 256).await;
    api.clock.advance_secs(2);
    let summary = "ü".repeat(500);
    let batch: Vec<_> = claimed.iter().map(|it| entry(it, json!({ "summary": summary }))).collect();
    let expected: Vec<_> = claimed
        .iter()
        .map(|it| json!({ "delivery": it["delivery"], "state": "processed" }))
        .collect();
    assert_eq!(told(&complete(&api, "billing", &batch).await), expected);
    assert_eq!(api.metric(PROCESSED).await, "256");
    let seconds = r#"oncebox_attempt_seconds_sum{route="billing"}"#;
    assert_eq!(api.metric(seconds).await, "512.0");

    let Api { mut bed, server, .. } = api;
    server.stop().await;
    bed.reopen().await;
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 256));
    let kept = format!("SELECT count(*) FROM finished WHERE summary = '{summary}'");
    assert_eq!(bed.query(&kept), "256");
}

/// One is done, one is stale, one was given to somebody else, one never was, one is no id at all.
async fn entries_stand_for_themselves(bed: Bed) {
    let api = Api::start(bed).await;
    let (receipts, first) = claimed(&api, 1).await;
    api.bed.pass(61);
    api.bed.store.rescue(10).await.unwrap();
    let again = api.claim("billing", &json!({ "wait": "20s" })).await;
    assert_eq!(again[0]["delivery"], first[0]["delivery"]);
    let (more, good) = {
        let event = |id| api.bed.event(id, &[api.route("billing")]);
        let events = vec![event("evt_a"), event("evt_b")];
        let receipts: Vec<_> = events.iter().map(|event| event.receipt).collect();
        api.bed.record(events).await;
        (receipts, api.claim("billing", &json!({ "wait": "20s" })).await)
    };
    let never = api.bed.arrival("nobody", "{}").receipt;
    let never = json!({ "delivery": api.route("billing").of(never).to_string(), "lease": "1.1" });
    let batch = [
        entry(&good[0], json!({ "summary": "booked" })),
        entry(&first[0], json!({})),
        never,
        json!({ "delivery": "x", "lease": "1.1" }),
        entry(&good[1], json!({ "outcome": "stale" })),
    ];
    let told = told(&complete(&api, "billing", &batch).await);
    assert_eq!(told[0], json!({ "delivery": good[0]["delivery"], "state": "processed" }));
    assert_error(&told[1], 409, "lease_lost");
    assert_eq!(told[1]["error"]["state"], "processing");
    assert_error(&told[2], 404, "not_found");
    assert_error(&told[3], 404, "not_found");
    assert_eq!(told[4], json!({ "delivery": good[1]["delivery"], "state": "skipped" }));
    let ids = |list: &[Value]| list.iter().map(|one| one["delivery"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&told), ids(&batch));

    assert_eq!(api.row(receipts[0], "billing").await.state, State::Processing);
    let booked = api.row(more[0], "billing").await;
    assert_eq!((booked.state, booked.summary.as_deref()), (State::Processed, Some("booked")));
    assert_eq!(api.row(more[1], "billing").await.state, State::Skipped);
    assert_eq!(api.metric(PROCESSED).await, "1");
    assert_eq!(api.metric(r#"oncebox_leases_lost_total{route="billing"}"#).await, "1");
}

/// A token for one route learns nothing of another, and ends nothing there.
async fn what_another_route_has_is_not_told(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "ledger").await;
    let theirs = api.take("ledger").await;
    let (_, ours) = claimed(&api, 1).await;
    let token = api.make_token(&["pull:billing"], None).await;
    let batch = json!({ "deliveries": entries(&[theirs.clone(), ours[0].clone()]) }).to_string();
    let told = told(&api.post_as(&token, "/routes/billing/complete", &batch).await);
    assert_error(&told[0], 404, "not_found");
    assert_eq!(told[0]["error"].get("state"), None);
    assert_eq!(told[1]["state"], "processed");
    assert_eq!(api.row(receipt, "ledger").await.state, State::Processing);

    for path in ["/routes/ledger/complete", "/routes/nowhere/complete"] {
        assert_problem(&api.post_as(&token, path, &batch).await, 403, "forbidden");
        assert_problem(&api.post_as("", path, &batch).await, 401, "unauthorized");
    }
    let nowhere = complete(&api, "nowhere", &entries(std::slice::from_ref(&theirs))).await;
    assert_problem(&nowhere, 404, "not_found");
    assert_eq!(api.row(receipt, "ledger").await.state, State::Processing);
    assert_eq!(api.say(&theirs, "complete", json!({})).await.status, 200);
}

async fn a_batch_that_is_wrong_changes_nothing(bed: Bed) {
    let api = Api::start(bed).await;
    let (_, claimed) = claimed(&api, 2).await;
    let good = entry(&claimed[0], json!({}));
    let id = claimed[0]["delivery"].as_str().unwrap();
    let many = |count: usize| -> Vec<Value> {
        let other = |number| json!({ "delivery": format!("{number}"), "lease": "1.1" });
        (1..count).map(other).chain([good.clone()]).collect()
    };
    for (body, what) in [
        (json!({}), "missing field `deliveries`"),
        (json!({ "deliveries": [] }), "between 1 and 256, not 0"),
        (json!({ "deliveries": many(257) }), "between 1 and 256, not 257"),
        (json!({ "deliveries": [good, good] }), id),
        (
            json!({ "deliveries": [good, { "delivery": id.to_uppercase(), "lease": "1.1" }] }),
            "twice",
        ),
        (json!({ "deliveries": [good, entry(&claimed[1], json!({ "class": "x" }))] }), "`class`"),
        (json!({ "deliveries": [good, entry(&claimed[1], json!({ "outcome": 1 }))] }), "line 1"),
        (
            json!({ "deliveries": [good, { "delivery": "a", "lease": "b" }] }),
            "`a`: `lease` is none",
        ),
        (json!({ "deliveries": [good, { "delivery": "a" }] }), "missing field `lease`"),
        (json!({ "deliveries": [good], "lease": "1.1" }), "unknown field `lease`"),
        (json!([good]), "invalid"),
    ] {
        let answer = api.post("/routes/billing/complete", &body).await;
        let detail = assert_problem(&answer, 400, "invalid_request");
        assert!(detail.contains(what), "{body}: {detail}");
    }
    let cut = api.post_as(&api.token, "/routes/billing/complete", r#"{"deliveries":["#).await;
    assert_problem(&cut, 400, "invalid_request");
    let large = entry(&claimed[0], json!({ "summary": "x".repeat(600 << 10) }));
    let answer = complete(&api, "billing", &[large]).await;
    assert_problem(&answer, 413, "too_large");

    assert_eq!((api.bed.rows("deliveries"), api.bed.rows("finished")), (2, 0));
    assert_eq!(told(&complete(&api, "billing", &many(256)).await)[255]["state"], "processed");
}

/// An answer can be lost, and its request comes again, in whatever form.
async fn a_batch_that_is_said_again_is_counted_once(bed: Bed) {
    let api = Api::start(bed).await;
    let (_, claimed) = claimed(&api, 3).await;
    let first = complete(&api, "billing", &entries(&claimed[..2])).await;
    let again = complete(&api, "billing", &entries(&claimed)).await;
    assert_eq!(told(&first), told(&again)[..2]);
    assert_eq!(told(&again)[2]["state"], "processed");
    assert_eq!(api.say(&claimed[0], "complete", json!({})).await.status, 200);
    assert_eq!(api.metric(PROCESSED).await, "3");

    let other = entry(&claimed[0], json!({ "outcome": "stale" }));
    let other = told(&complete(&api, "billing", &[other]).await);
    assert_error(&other[0], 409, "lease_lost");
    assert_eq!(other[0]["error"]["state"], "processed");
}

async fn a_removed_route_still_hears_of_a_batch(bed: Bed) {
    let api = Api::start(bed).await;
    let (_, claimed) = claimed(&api, 2).await;
    api.server.reload(without("routes.billing")).await.unwrap();
    let told = told(&complete(&api, "billing", &entries(&claimed)).await);
    assert!(told.iter().all(|one| one["state"] == "processed"), "{told:?}");
    assert_eq!(api.bed.rows("finished"), 2);
}

/// Many workers that name the same deliveries at the same time, one by one and together.
async fn batches_that_meet_end_each_delivery_once(bed: Bed) {
    let api = Arc::new(Api::start(bed).await);
    let (_, claimed) = claimed(&api, 100).await;
    let mut workers = JoinSet::new();
    for worker in 0..8 {
        let (api, mine) = (api.clone(), claimed[worker * 10..worker * 10 + 30].to_vec());
        workers.spawn(async move {
            let batch = entries(&mine);
            let (one, all) = tokio::join!(
                api.say(&mine[0], "complete", json!({})),
                complete(&api, "billing", &batch)
            );
            assert_eq!(one.status, 200, "{}", one.text());
            let told = told(&all);
            assert!(told.iter().all(|one| one["state"] == "processed"), "{told:?}");
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    assert_eq!(api.metric(PROCESSED).await, "100");
    assert_eq!(api.bed.rows("finished"), 100);
}
