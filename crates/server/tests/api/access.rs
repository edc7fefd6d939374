//! Who may ask, and what is refused: tokens, scopes, malformed and hostile requests.

use oncebox::token::TokenId;
use oncebox_testkit::http::{AsyncConnection, Connection};
use oncebox_testkit::store::{Bed, act};
use serde_json::json;

use crate::bed::{Api, assert_problem};

async fn start() -> Api {
    Api::start(Bed::sqlite().await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_that_works_nothing_is_told() {
    let api = start().await;
    let receipt = api.event("evt_1", "billing").await;
    let revoked = api.make_token(&["admin"], None).await;
    let id = TokenId(revoked.split('_').nth(1).unwrap().to_owned());
    assert!(api.bed.store.revoke_token(&id, &act("leaked")).await.unwrap());
    let expired = api.make_token(&["admin"], Some(60)).await;
    assert_eq!(api.post_as(&expired, "/routes/billing/claim", r#"{"max":1}"#).await.status, 200);
    api.clock.advance_secs(60);
    let good = &api.token;
    let id = good.split('_').nth(1).unwrap();
    let other_secret = format!("oncebox_{id}_{}", "A".repeat(43));
    let unknown = format!("oncebox_000000000000_{}", "A".repeat(43));

    for token in ["", "x", &revoked, &expired, &other_secret, &unknown, &good[1..], "oncebox__"] {
        for path in [
            "/routes/billing/claim".to_owned(),
            "/routes/nowhere/claim".to_owned(),
            format!("/deliveries/{}/complete", api.route("billing").of(receipt)),
            "/deliveries/x/fail".to_owned(),
        ] {
            let refused = api.post_as(token, &path, "{}").await;
            assert_problem(&refused, 401, "unauthorized");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer realm=\"oncebox\""));
        }
    }
    let headers = [("Authorization", format!("Basic {good}"))];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut connection = AsyncConnection::open(api.server.admin).await.unwrap();
    let path = "/api/v1/routes/billing/claim";
    let answer = connection.request("POST", path, &headers, b"{}").await.unwrap();
    assert_problem(&answer, 401, "unauthorized");
    let answer = connection.request("POST", path, &[], b"{}").await.unwrap();
    assert_problem(&answer, 401, "unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_is_for_its_route_alone() {
    let api = start().await;
    api.event("evt_1", "billing").await;
    api.event("evt_2", "ledger").await;
    let ours = api.take("billing").await;
    let path = format!("/deliveries/{}/complete", ours["delivery"].as_str().unwrap());
    let body = json!({ "lease": ours["lease"] }).to_string();

    let ledger = api.make_token(&["pull:ledger"], None).await;
    let claim = api.post_as(&ledger, "/routes/ledger/claim", "{}").await;
    assert_eq!(claim.json()["deliveries"].as_array().unwrap().len(), 1);
    let viewer = api.make_token(&["view", "payloads", "operate"], None).await;
    for token in [&ledger, &viewer] {
        let refused = api.post_as(token, "/routes/billing/claim", "{}").await;
        let detail = assert_problem(&refused, 403, "forbidden");
        assert!(detail.contains("pull:billing"), "{detail}");
        assert_problem(&api.post_as(token, &path, &body).await, 403, "forbidden");
        // Nobody learns by a scope they lack which routes there are.
        let refused = api.post_as(token, "/routes/nowhere/claim", "{}").await;
        assert_problem(&refused, 403, "forbidden");
    }
    let billing = api.make_token(&["view", "pull:billing"], None).await;
    assert_eq!(api.post_as(&billing, &path, &body).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_found() {
    let api = start().await;
    let receipt = api.event("evt_1", "billing").await;
    let nowhere = api.post("/routes/nowhere/claim", &json!({})).await;
    assert_problem(&nowhere, 404, "not_found");
    let pushed = api.post("/routes/mailer/claim", &json!({})).await;
    assert_problem(&pushed, 409, "not_a_pull_route");
    let never = api.route("ledger").of(receipt);
    for id in ["x", "1.1", &format!("{receipt}"), &format!("{receipt}.999"), &never.to_string()] {
        for verb in ["complete", "fail", "extend"] {
            let path = format!("/deliveries/{id}/{verb}");
            let answer = api.post(&path, &json!({ "lease": "1.1" })).await;
            assert_problem(&answer, 404, "not_found");
        }
    }
    for path in ["/routes/billing", "/deliveries", "/routes/%ff/claim", "/routes//claim", ""] {
        assert_problem(&api.post(path, &json!({})).await, 404, "not_found");
    }
    let mut connection = AsyncConnection::open(api.server.admin).await.unwrap();
    for method in ["GET", "PUT", "DELETE"] {
        let path = "/api/v1/routes/billing/claim";
        let answer = connection.request(method, path, &[], b"").await.unwrap();
        assert_problem(&answer, 405, "method_not_allowed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_understood_is_said() {
    let api = start().await;
    api.event("evt_1", "billing").await;
    for (body, what) in [
        ("{", "EOF"),
        ("[]", "invalid"),
        ("null", "null"),
        ("\u{feff}{}", "expected value"),
        (r#"{"max":0}"#, "`max` must be between 1 and 256"),
        (r#"{"max":257}"#, "`max` must be between 1 and 256"),
        (r#"{"max":-1}"#, "-1"),
        (r#"{"max":1e99}"#, "floating point"),
        (r#"{"max":"10"}"#, "string"),
        (r#"{"max":1,"max":2}"#, "duplicate field `max`"),
        (r#"{"maximum":1}"#, "unknown field `maximum`, expected one of `max`, `lease`, `wait`"),
        (r#"{"lease":"999ms"}"#, "`lease` must be between 1s and 1h"),
        (r#"{"lease":"2h"}"#, "`lease` must be between 1s and 1h"),
        (r#"{"lease":30}"#, "30"),
        (r#"{"lease":"99999999999999999999d"}"#, "line 1"),
        (r#"{"wait":"31s"}"#, "`wait` must be at most 30s"),
        (r#"{"wait":"-1s"}"#, "line 1"),
    ] {
        let answer = api.post_as(&api.token, "/routes/billing/claim", body).await;
        let detail = assert_problem(&answer, 400, "invalid_request");
        assert!(detail.contains(what), "{body}: {detail}");
    }
    let claimed = api.take("billing").await;
    let path = format!("/deliveries/{}", claimed["delivery"].as_str().unwrap());
    for (verb, body, what) in [
        ("complete", json!({}), "missing field `lease`"),
        ("complete", json!({ "lease": 1 }), "expected a string"),
        ("complete", json!({ "lease": "1.1", "outcome": "done" }), "unknown variant `done`"),
        ("complete", json!({ "lease": "1.1", "reason": "x" }), "unknown field `reason`"),
        ("fail", json!({ "lease": "1.1", "class": "odd" }), "unknown variant `odd`"),
        ("fail", json!({ "lease": "1.1", "snooze": "1s", "retry_after": "1s" }), "exclude"),
        ("fail", json!({ "lease": "1.1", "class": "permanent", "snooze": "1s" }), "for good"),
        ("extend", json!({ "lease": "1.1", "by": "2h" }), "`by` must be between 1s and 1h"),
        ("extend", json!({ "lease": "x" }), "`lease` is none"),
    ] {
        let answer = api.post(&format!("{path}/{verb}"), &body).await;
        let detail = assert_problem(&answer, 400, "invalid_request");
        assert!(detail.contains(what), "{verb} {body}: {detail}");
    }
    assert_eq!(api.say(&claimed, "complete", json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_bounded_in_size_and_time() {
    let api = start().await;
    let large = format!(r#"{{"max":1,"lease":"{}"}}"#, "x".repeat(20 << 10));
    let answer = api.post_as(&api.token, "/routes/billing/claim", &large).await;
    assert_problem(&answer, 413, "too_large");
    // A long name of a field comes back short.
    let long = json!({ "x".repeat(10_000): 1 }).to_string();
    let answer = api.post_as(&api.token, "/routes/billing/claim", &long).await;
    assert!(assert_problem(&answer, 400, "invalid_request").len() <= 300);

    let (admin, token) = (api.server.admin, api.token.clone());
    let slow = tokio::task::spawn_blocking(move || {
        let mut connection = Connection::open(admin).unwrap();
        let head = format!(
            "POST /api/v1/routes/billing/claim HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n{{"
        );
        connection.send(head.as_bytes()).unwrap();
        connection.answer().unwrap()
    });
    assert_problem(&slow.await.unwrap(), 408, "too_slow");
}
