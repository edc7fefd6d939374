//! What is refused of calls on effects: bad names, results and messages, and who may not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncebox::effect::OUTBOX;
use oncebox::limits::{API_MESSAGE_BODY, API_RESULT_BODY, KEY_BYTES, MESSAGE_BYTES, RESULT_BYTES};
use oncebox::route::RouteRules;
use oncebox_testkit::for_each_store;
use oncebox_testkit::http::AsyncConnection;
use oncebox_testkit::store::Bed;
use serde_json::{Value, json};

use crate::bed::{Api, assert_problem};
use crate::effects::{again, begin, kept, of_effect, told};

for_each_store!(
    what_is_at_its_limit_is_kept,
    after_the_end_nothing_is_written,
    a_token_of_another_route_gives_no_evidence,
    a_token_of_another_route_takes_no_step,
);

const VERBS: [&str; 5] =
    ["effects/begin", "effects/complete", "effects/abandon", "advance", "send"];

async fn start(bed: Bed) -> (Api, Value) {
    bed.store.register_source(&format!("{OUTBOX}mail"), None).await.unwrap();
    bed.route(&format!("{OUTBOX}mail"), RouteRules::default()).await;
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    (api, claimed)
}

/// A body that the call understands.
fn good(verb: &str, lease: &Value) -> Value {
    match verb {
        "advance" => json!({ "lease": lease, "object": "in_1", "version": 1 }),
        "send" => json!({ "lease": lease, "destination": "mail", "key": "k", "payload": {} }),
        _ => json!({ "lease": lease, "key": "k" }),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_token_for_the_route_may() {
    let (api, claimed) = start(Bed::sqlite().await).await;
    let ledger = api.make_token(&["pull:ledger", "view", "operate"], None).await;
    let billing = api.make_token(&["pull:billing"], None).await;
    let id = claimed["delivery"].as_str().unwrap();
    for verb in VERBS {
        let body = good(verb, &claimed["lease"]).to_string();
        let path = format!("/deliveries/{id}/{verb}");
        assert_problem(&api.post_as("", &path, &body).await, 401, "unauthorized");
        let refused = api.post_as(&ledger, &path, &body).await;
        let detail = assert_problem(&refused, 403, "forbidden");
        assert!(detail.contains("pull:billing"), "{detail}");
        let nowhere = format!("/deliveries/x/{verb}");
        assert_problem(&api.post_as(&billing, &nowhere, &body).await, 404, "not_found");
    }
    assert_eq!((api.bed.rows("effects"), api.bed.rows("lanes")), (0, 0));
    for verb in VERBS {
        let body = good(verb, &claimed["lease"]).to_string();
        let answer = api.post_as(&billing, &format!("/deliveries/{id}/{verb}"), &body).await;
        // What was completed cannot be abandoned.
        let expected = if verb == "effects/abandon" { 409 } else { 200 };
        assert_eq!(answer.status, expected, "{verb}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_names_are_explained() {
    let (api, claimed) = start(Bed::sqlite().await).await;
    let long = "k".repeat(KEY_BYTES + 1);
    let step = format!("{}/billing/charge", claimed["receipt"].as_str().unwrap());
    for verb in ["begin", "complete", "abandon"] {
        for (more, what) in [
            (json!({}), "name the effect: `key`"),
            (json!({ "key": "a", "step": "b" }), "`key` and `step` exclude each other"),
            (json!({ "key": "" }), "`key`: it is empty; name what happens"),
            (json!({ "key": long }), "`key`: it is 513 bytes long, and 512 are allowed"),
            (json!({ "key": "a\0b" }), "`key`: it has a control character"),
            (json!({ "key": "outbox/mail/k" }), "`key`: those that begin with `outbox/`"),
            (json!({ "key": step }), "are of steps; say `step` if it is one"),
            (json!({ "step": "" }), "`step`: it is empty"),
            (json!({ "step": long }), "`step`: it is 513 bytes long"),
            (json!({ "step": "a\nb" }), "`step`: it has a control character"),
            (json!({ "key": 1 }), "expected a string"),
            (json!({ "kee": "k" }), "unknown field `kee`"),
        ] {
            let answer = of_effect(&api, &claimed, verb, more).await;
            let detail = assert_problem(&answer, 400, "invalid_request");
            assert!(detail.contains(what), "{verb}: {detail}");
        }
    }
    let answer = of_effect(&api, &claimed, "begin", json!({ "key": "k", "on_unknown": "x" })).await;
    let detail = assert_problem(&answer, 400, "invalid_request");
    assert!(detail.contains("expected `retry` or `ask`"), "{detail}");
    assert_eq!(api.bed.rows("effects"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_and_bodies_are_checked() {
    let (api, claimed) = start(Bed::sqlite().await).await;
    let path = |verb: &str| format!("/deliveries/{}/{verb}", claimed["delivery"].as_str().unwrap());
    for verb in VERBS {
        for (body, what) in [
            ("".to_owned(), "missing field `lease`"),
            ("{".to_owned(), "EOF"),
            ("[]".to_owned(), "invalid"),
            (good(verb, &json!("x")).to_string(), "`lease` is none"),
            (good(verb, &json!(7)).to_string(), "expected a string"),
        ] {
            let answer = api.post_as(&api.token, &path(verb), &body).await;
            let detail = assert_problem(&answer, 400, "invalid_request");
            assert!(detail.contains(what), "{verb} {body}: {detail}");
        }
    }
}

/// Text is UTF-8. Other bytes are refused wherever they stand.
#[tokio::test(flavor = "multi_thread")]
async fn binary_names_are_refused() {
    let (api, claimed) = start(Bed::sqlite().await).await;
    let bearer = format!("Bearer {}", api.token);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    for verb in VERBS {
        let path = format!("/api/v1/deliveries/{}/{verb}", claimed["delivery"].as_str().unwrap());
        let good = good(verb, &claimed["lease"]).to_string();
        let name = if verb == "advance" { "\"in_1\"" } else { "\"k\"" };
        let (before, after) = good.split_once(name).unwrap();
        let body = [before.as_bytes(), b"\"\xff\xfe\"", after.as_bytes()].concat();
        let mut connection = AsyncConnection::open(api.server.admin).await.unwrap();
        let answer = connection.request("POST", &path, &headers, &body).await.unwrap();
        let detail = assert_problem(&answer, 400, "invalid_request");
        assert!(detail.contains("unicode"), "{verb}: {detail}");
    }
    assert_eq!((api.bed.rows("effects"), api.bed.rows("lanes")), (0, 0));
}

/// The lease ended with the delivery.
async fn after_the_end_nothing_is_written(bed: Bed) {
    let (api, claimed) = start(bed).await;
    assert_eq!(api.say(&claimed, "complete", json!({})).await.status, 200);
    for verb in VERBS {
        let answer = api.say(&claimed, verb, good(verb, &claimed["lease"])).await;
        let code = match verb {
            "effects/complete" | "effects/abandon" => "not_begun",
            _ => "lease_lost",
        };
        assert_problem(&answer, 409, code);
    }
    assert_eq!((api.bed.rows("effects"), api.bed.rows("receipts")), (0, 1));
    assert_eq!(api.bed.query("SELECT count(*) FROM lanes WHERE applied IS NOT NULL"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_objects_and_messages_are_explained() {
    let (api, claimed) = start(Bed::sqlite().await).await;
    let long = "x".repeat(513);
    for (more, what) in [
        (json!({ "object": "", "version": 1 }), "`object` must have between 1 and 512 bytes"),
        (json!({ "object": long, "version": 1 }), "not 513"),
        (json!({ "object": "a\u{7f}", "version": 1 }), "control character"),
        (json!({ "object": "a" }), "missing field `version`"),
        (json!({ "object": "a", "version": 1.5 }), "floating point"),
        (json!({ "object": "a", "version": u64::MAX }), "18446744073709551615"),
    ] {
        let answer = api.say(&claimed, "advance", more).await;
        let detail = assert_problem(&answer, 400, "invalid_request");
        assert!(detail.contains(what), "{detail}");
    }
    for (more, what) in [
        (json!({}), "what to send is missing: `payload`"),
        (json!({ "payload": 1, "payload_base64": "" }), "exclude each other"),
        (json!({ "payload_base64": "%" }), "`payload_base64` is not padded base64"),
        (json!({ "payload_base64": "YQ" }), "`payload_base64` is not padded base64"),
        (json!({ "payload": 1, "key": "" }), "`key`: it is empty"),
        (json!({ "payload": 1, "key": long }), "`key`: it is 513 bytes long"),
        (json!({ "payload": 1, "key": "a\0" }), "`key`: it has a control character"),
        (json!({ "payload": 1, "destination": "" }), "as in [destinations.mailer]"),
        (json!({ "payload": 1, "destination": "a\0" }), "`destination` must be the name"),
        (json!({ "payload": 1, "destination": "outbox/mail" }), "`destination` must be the name"),
        (json!({ "payload": 1, "destination": "Mail" }), "lower-case letters"),
        (json!({ "payload": 1, "group": "" }), "`group`: it is empty"),
        (json!({ "payload": 1, "group": "a\tb" }), "`group`: it has a control character"),
        (json!({ "payload": 1, "content_type": "a\r\nb: c" }), "`content_type` must be such as"),
        (json!({ "payload": 1, "content_type": "json" }), "`content_type` must be such as"),
    ] {
        let mut message = json!({ "destination": "mail", "key": "k" });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = api.say(&claimed, "send", message).await;
        let detail = assert_problem(&answer, 400, "invalid_request");
        assert!(detail.contains(what), "{detail}");
    }
    assert_eq!((api.bed.rows("effects"), api.bed.rows("lanes")), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_cannot_be_kept_are_explained() {
    let (api, claimed) = start(Bed::sqlite().await).await;
    begin(&api, &claimed, "k").await;
    let path = format!("/deliveries/{}/effects/complete", claimed["delivery"].as_str().unwrap());
    let lease = claimed["lease"].as_str().unwrap();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (result, status, what) in [
        (r#""\u0000""#.to_owned(), 400, "`result`: it has the character U+0000"),
        (r#""\ud800""#.to_owned(), 400, "`result`: it is not JSON that can be recorded"),
        (deep, 400, "recursion limit"),
        ("1e999".to_owned(), 400, "number out of range"),
        (format!("\"{}\"", "x".repeat(RESULT_BYTES)), 413, "16384 can be recorded"),
        (format!("\"{}\"", "x".repeat(API_RESULT_BODY)), 413, "a request has at most 114688"),
    ] {
        let body = format!(r#"{{"lease":"{lease}","key":"k","result":{result}}}"#);
        let answer = api.post_as(&api.token, &path, &body).await;
        let code = if status == 413 { "too_large" } else { "invalid_request" };
        let detail = assert_problem(&answer, status, code);
        assert!(detail.contains(what), "{detail}");
    }
    assert_eq!(kept(&api, "k").await.result, None);
    told(&of_effect(&api, &claimed, "complete", json!({ "key": "k" })).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_bounded() {
    let (api, claimed) = start(Bed::sqlite().await).await;
    let large = vec![b'x'; MESSAGE_BYTES + 1];
    let text = String::from_utf8(large[..MESSAGE_BYTES - 1].to_vec()).unwrap();
    for payload in
        [json!({ "payload": text }), json!({ "payload_base64": STANDARD.encode(&large) })]
    {
        let mut message = payload;
        message["destination"] = "mail".into();
        message["key"] = "k".into();
        let answer = api.say(&claimed, "send", message).await;
        let detail = assert_problem(&answer, 413, "too_large");
        assert!(detail.contains("at most 1048576 bytes, not 1048577"), "{detail}");
    }
    let message =
        json!({ "destination": "mail", "key": "k", "payload": "x".repeat(API_MESSAGE_BODY) });
    assert_problem(&api.say(&claimed, "send", message).await, 413, "too_large");
    assert_eq!(api.bed.rows("effects"), 0);
}

async fn what_is_at_its_limit_is_kept(bed: Bed) {
    let (api, claimed) = start(bed).await;
    let key = "ü".repeat(KEY_BYTES / 2);
    assert_eq!(begin(&api, &claimed, &key).await, 0);
    let result = format!("\"{}\"", "x".repeat(RESULT_BYTES - 2));
    let spaced = format!("{}{result}{}", " ".repeat(5_000), "\n".repeat(5_000));
    let path = format!("/deliveries/{}/effects/complete", claimed["delivery"].as_str().unwrap());
    let lease = claimed["lease"].as_str().unwrap();
    let body = format!(r#"{{"lease":"{lease}","key":"{key}","result":{spaced}}}"#);
    told(&api.post_as(&api.token, &path, &body).await);
    assert_eq!(kept(&api, &key).await.result, Some(result));
    told(&of_effect(&api, &claimed, "begin", json!({ "step": key })).await);

    let payload = STANDARD.encode(vec![0xff; MESSAGE_BYTES]);
    let group = &key;
    let message = json!({
        "destination": "mail", "key": key, "payload_base64": payload, "group": group
    });
    let sent = told(&api.say(&claimed, "send", message).await);
    let id = sent["message"].as_str().unwrap().parse().unwrap();
    let receipt = api.bed.store.receipt(id).await.unwrap().unwrap();
    assert_eq!(receipt.body.len(), MESSAGE_BYTES);
    let object = json!({ "object": "x".repeat(512), "version": i64::MAX });
    assert_eq!(told(&api.say(&claimed, "advance", object).await), json!({ "advanced": true }));
    let of = |version: i64| json!({ "object": "in_unit", "version": version });
    let told_of = told(&api.say(&claimed, "advance", of(1_760_000_000_000)).await);
    assert_eq!(told_of, json!({ "advanced": true }));
    let seconds = api.say(&claimed, "advance", of(1_760_000_001)).await;
    let detail = assert_problem(&seconds, 400, "invalid_request");
    assert!(detail.contains("reads as seconds since 1970"), "{detail}");
}

/// With a delivery that is made up, and with one whose lease it had and lost.
async fn a_token_of_another_route_gives_no_evidence(bed: Bed) {
    let (api, zombie) = start(bed).await;
    let ledger = api.make_token(&["pull:ledger"], None).await;
    api.event("evt_2", "ledger").await;
    let lost = api.take("ledger").await;
    begin(&api, &zombie, "refund:ch_1").await;
    let second = again(&api, "billing").await;
    assert_eq!(begin(&api, &second, "refund:ch_1").await, 1);
    let said = json!({ "key": "refund:ch_1", "result": { "charge": "ch_1" } });
    let told = of_effect(&api, &zombie, "complete", said).await;
    assert_problem(&told, 409, "lease_lost");

    let route = api.route("ledger").no.0;
    let made_up = format!("{}.{route}", "0192c6e5-7a00-7000-8000-00000000002a");
    let lie = |lease: &str| json!({ "lease": lease, "key": "refund:ch_1", "result": "x" });
    let path = |id: &str| format!("/deliveries/{id}/effects/complete");
    let answer = api.post_as(&ledger, &path(&made_up), &lie("1.1").to_string()).await;
    assert_problem(&answer, 404, "not_found");
    let (id, lease) = (lost["delivery"].as_str().unwrap(), lost["lease"].as_str().unwrap());
    let answer = api.post_as(&ledger, &path(id), &lie(lease).to_string()).await;
    assert_problem(&answer, 409, "not_begun");
    let evidence = kept(&api, "refund:ch_1").await.evidence.unwrap();
    assert_eq!(evidence.result.as_deref(), Some(r#"{"charge":"ch_1"}"#));
}

async fn a_token_of_another_route_takes_no_step(bed: Bed) {
    let (api, claimed) = start(bed).await;
    let ledger = api.make_token(&["pull:ledger"], None).await;
    api.event("evt_2", "ledger").await;
    let other = api.take("ledger").await;
    let charge = format!("{}/billing/charge", claimed["receipt"].as_str().unwrap());
    for verb in ["begin", "complete", "abandon"] {
        let path = format!("/deliveries/{}/effects/{verb}", other["delivery"].as_str().unwrap());
        let body = json!({ "lease": other["lease"], "key": charge }).to_string();
        assert_problem(&api.post_as(&ledger, &path, &body).await, 400, "invalid_request");
    }
    let begun = told(&of_effect(&api, &claimed, "begin", json!({ "step": "charge" })).await);
    assert_eq!((&begun["status"], &begun["key"]), (&json!("begun"), &json!(charge)));
}
