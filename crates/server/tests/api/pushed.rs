//! A pushed delivery is ended by the worker that pushes it, never over HTTP by a guessed lease.

use oncebox::delivery::{Claimed, DeliveryId, State};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, act, message, under};
use serde_json::json;

use crate::bed::{Api, assert_problem};

for_each_store!(
    a_pushed_delivery_is_not_ended_by_a_right_lease,
    an_outbox_message_is_not_ended_by_a_right_lease,
    what_is_returned_was_not_tried,
    what_has_a_begun_effect_is_not_returned,
);

async fn a_pushed_delivery_is_not_ended_by_a_right_lease(bed: Bed) {
    let api = Api::start(bed).await;
    // Paused, so that the server leaves it to this test.
    assert!(api.bed.store.pause_route("mailer", true, &act("a test")).await.unwrap());
    let receipt = api.event("evt_1", "mailer").await;
    let until = match api.bed.on_sqlite() {
        true => "CAST(unixepoch() * 1000 + 60000 AS INTEGER)",
        false => "now() + interval '1 minute'",
    };
    api.bed.query(&format!(
        "UPDATE deliveries SET state = 'processing', epoch = 1048577, attempts = 1,
         lease_until = {until}, worker = 'node-1'"
    ));
    assert_refused(&api, api.route("mailer").of(receipt), 1_048_577).await;
}

async fn an_outbox_message_is_not_ended_by_a_right_lease(bed: Bed) {
    let api = Api::start(bed).await;
    let outbox = api.bed.destination("post").await;
    api.event("evt_1", "billing").await;
    let sender: Claimed = api.bed.take(&api.route("billing")).await;
    api.bed.store.send(under(&sender), &message("post", "m_1", "{}")).await.unwrap();
    let relayed = api.bed.take(&outbox).await;
    assert_refused(&api, relayed.delivery, relayed.lease.0).await;
}

/// Nothing is done to a delivery that is pushed, whatever is said of it under its lease.
async fn assert_refused(api: &Api, delivery: DeliveryId, lease: i64) {
    let lease = format!("{lease}.1760000000000");
    for (verb, mut body) in [
        ("complete", json!({})),
        ("fail", json!({ "class": "permanent" })),
        ("extend", json!({})),
        ("return", json!({})),
        ("effects/begin", json!({ "key": "k" })),
        ("advance", json!({ "object": "in_456", "version": 1 })),
        ("send", json!({ "destination": "post", "key": "k", "payload": {} })),
    ] {
        body["lease"] = lease.clone().into();
        let refused = api.post(&format!("/deliveries/{delivery}/{verb}"), &body).await;
        let detail = assert_problem(&refused, 409, "not_a_pull_route");
        assert!(detail.contains("is pushed"), "{verb}: {detail}");
    }
    let row = api.bed.delivery(delivery).await;
    assert_eq!((row.state, row.counts.failures), (State::Processing, 0));
    assert_eq!(api.bed.rows("finished"), 0);
}

async fn what_is_returned_was_not_tried(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let returned = api.say(&claimed, "return", json!({})).await;
    assert_eq!((returned.status, returned.json()), (200, json!({ "state": "received" })));
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.state, row.counts.attempts), (State::Received, 0));
    // An answer can be lost: said again, it is told as done.
    let returned = api.say(&claimed, "return", json!({})).await;
    assert_eq!((returned.status, returned.json()), (200, json!({ "state": "received" })));
    assert_problem(&api.say(&claimed, "complete", json!({})).await, 409, "lease_lost");
    assert_eq!(api.row(receipt, "billing").await.counts.attempts, 0);
    let again = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    assert_eq!(again["attempt"], 1);
    let failed = api.say(&again, "fail", json!({ "retry_after": "1s" })).await;
    assert_eq!(failed.status, 200, "{}", failed.text());
    api.bed.pass(30);
    let third = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    let returned = api.say(&third, "return", json!({})).await;
    assert_eq!(returned.json(), json!({ "state": "retrying" }));
}

async fn what_has_a_begun_effect_is_not_returned(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let begun = api.say(&claimed, "effects/begin", json!({ "key": "refund:ch_1" })).await;
    assert_eq!(begun.status, 200, "{}", begun.text());
    let refused = api.say(&claimed, "return", json!({})).await;
    assert_problem(&refused, 409, "effect_begun");
    let abandoned = api.say(&claimed, "effects/abandon", json!({ "key": "refund:ch_1" })).await;
    assert_eq!(abandoned.status, 200, "{}", abandoned.text());
    assert_eq!(api.say(&claimed, "return", json!({})).await.status, 200);
}
