//! What a reload changes for those who pull, and what it does not.

use oncebox::delivery::State;
use oncebox::receipt::Arrival;
use oncebox::store::StoreError;
use oncebox_testkit::for_each_store;
use oncebox_testkit::gate::Gate;
use oncebox_testkit::store::Bed;
use serde_json::json;

use crate::bed::{Api, assert_problem, with};

for_each_store!(
    a_route_that_is_pushed_by_now_still_hears_the_end,
    what_was_claimed_under_a_guard_ends_under_it,
    a_reload_that_fails_leaves_the_rules_alone,
    a_route_that_was_pushed_gets_a_service_once_it_is_pulled,
);

async fn a_route_that_is_pushed_by_now_still_hears_the_end(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let mut config = api.server.config();
    let mailer = config.routes["mailer"].clone();
    config.routes.insert("billing".to_owned(), mailer);
    api.server.reload(config).await.unwrap();

    let pushed = api.post("/routes/billing/claim", &json!({})).await;
    assert_problem(&pushed, 409, "not_a_pull_route");
    let done = api.say(&claimed, "complete", json!({})).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(api.row(receipt, "billing").await.state, State::Processed);
}

/// The rules of now are not those it was claimed under.
async fn what_was_claimed_under_a_guard_ends_under_it(bed: Bed) {
    let api = Api::start(bed).await;
    let without = api.server.config();
    api.server.reload(with("routes.ledger", "stale = \"skip\"")).await.unwrap();
    let event = api.bed.event("evt_1", &[api.route("ledger")]);
    api.bed.send(Arrival { object: Some("in_1".into()), version: Some(7), ..event }).await;
    let claimed = api.take("ledger").await;
    api.server.reload(without).await.unwrap();
    let done = api.say(&claimed, "complete", json!({})).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(api.bed.query("SELECT applied FROM lanes"), "7");
}

/// Everything stays as it was: also the rules that the store decides by.
async fn a_reload_that_fails_leaves_the_rules_alone(mut bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    bed.store = gate.clone();
    let api = Api::start(bed).await;
    let before = api.bed.store.routes().await.unwrap();
    let changed = with("routes.billing", "order = \"object\"");
    gate.fail_secrets([StoreError::Unavailable("away".to_owned())]);
    assert!(api.server.reload(changed.clone()).await.is_err());
    assert_eq!(api.bed.store.routes().await.unwrap(), before);
    assert!(!api.route("billing").rules.ordered);

    api.server.reload(changed).await.unwrap();
    let after = api.bed.store.routes().await.unwrap();
    let billing = after.iter().find(|route| route.name == "billing").unwrap();
    assert!(billing.rules.ordered && api.route("billing").rules.ordered);
}

/// A route that is pushed has no service, and none is fixed for it.
async fn a_route_that_was_pushed_gets_a_service_once_it_is_pulled(bed: Bed) {
    let api = Api::start(bed).await;
    let mut config = with("routes.ledger", "service = \"shop\"");
    let pulled = config.routes["ledger"].clone();
    config.routes.insert("mailer".to_owned(), pulled);
    config.routes.insert("ledger".to_owned(), api.server.config().routes["ledger"].clone());
    api.server.reload(config).await.unwrap();
    let service = "SELECT service FROM routes WHERE name = 'mailer'";
    assert_eq!(api.bed.query(service), "shop");
}
