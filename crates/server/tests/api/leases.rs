//! Leases: they end, can be extended, and whoever lost one changes nothing.

use oncebox::delivery::State;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::Bed;
use serde_json::json;

use crate::bed::{Api, assert_problem};

for_each_store!(
    a_lease_that_ran_out_changes_nothing,
    a_zombie_changes_nothing,
    a_lease_can_be_extended,
    a_forged_lease_changes_nothing,
);

/// Nobody has taken the delivery over yet: that the time is up is enough.
async fn a_lease_that_ran_out_changes_nothing(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    api.bed.pass(61);
    for (verb, more) in [
        ("complete", json!({ "summary": "too late" })),
        ("complete", json!({ "outcome": "stale" })),
        ("fail", json!({ "class": "permanent" })),
        ("fail", json!({ "snooze": "1m" })),
        ("extend", json!({ "by": "1h" })),
    ] {
        let late = api.say(&claimed, verb, more).await;
        assert_problem(&late, 409, "lease_lost");
    }
    assert_eq!(api.bed.rows("finished"), 0);
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.counts.attempts, row.counts.failures, row.summary), (1, 0, None));
    let dead = api.bed.query("SELECT count(*) FROM deliveries WHERE state = 'dead'");
    assert_eq!(dead, "0");
}

async fn a_zombie_changes_nothing(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let zombie = api.take("billing").await;
    api.bed.pass(61);
    api.bed.store.rescue(10).await.unwrap();
    let second = api.claim("billing", &json!({ "lease": "60s", "wait": "20s" })).await.remove(0);
    assert_eq!(second["delivery"], zombie["delivery"]);
    assert_eq!(second["key"], zombie["key"]);
    assert_eq!(second["attempt"], 2);

    for verb in ["complete", "fail", "extend"] {
        let late = api.say(&zombie, verb, json!({})).await;
        assert_problem(&late, 409, "lease_lost");
        assert_eq!(late.json()["state"], "processing");
    }
    let done = api.say(&second, "complete", json!({ "summary": "by the second" })).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.state, row.summary.as_deref()), (State::Processed, Some("by the second")));
    assert_eq!((row.counts.attempts, row.counts.crashes), (2, 1));
}

async fn a_lease_can_be_extended(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let before = api.row(receipt, "billing").await.lease_until.unwrap();

    let extended = api.say(&claimed, "extend", json!({ "by": "10m" })).await;
    let after = api.row(receipt, "billing").await.lease_until.unwrap();
    let told = json!({ "state": "processing", "lease_until": after.to_string() });
    assert_eq!((extended.status, extended.json()), (200, told));
    let gained = after.duration_since(before).as_secs();
    assert!((535..=600).contains(&gained), "{gained}");

    api.bed.pass(500);
    let done = api.say(&claimed, "complete", json!({})).await;
    assert_eq!(done.status, 200, "{}", done.text());
}

async fn a_forged_lease_changes_nothing(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let (lease, given) = claimed["lease"].as_str().unwrap().split_once('.').unwrap();
    let lease: i64 = lease.parse().unwrap();
    for forged in [lease - 1, lease + 1, 0, i64::MIN, i64::MAX] {
        let mut other = claimed.clone();
        other["lease"] = format!("{forged}.{given}").into();
        assert_problem(&api.say(&other, "complete", json!({})).await, 409, "lease_lost");
    }
    for garbage in ["", "1", "x.y", "1.2.3", "🎉"] {
        let mut other = claimed.clone();
        other["lease"] = garbage.into();
        assert_problem(&api.say(&other, "complete", json!({})).await, 400, "invalid_request");
    }
    assert_eq!(api.say(&claimed, "complete", json!({})).await.status, 200);
}
