//! Messages and watermarks over HTTP, and what is stored of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncebox::delivery::State;
use oncebox::effect::{EffectKind, EffectState, OUTBOX};
use oncebox::receipt::{ReceiptId, decode_headers};
use oncebox::route::RouteRules;
use oncebox::store::Receipt;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Route};
use serde_json::{Value, json};

use crate::bed::{Api, assert_problem};
use crate::effects::{kept, told};

for_each_store!(
    a_message_is_written_once,
    the_first_payload_stands,
    messages_of_a_group_are_numbered,
    a_payload_goes_out_as_it_was_given,
    a_destination_must_be_configured,
    without_a_good_lease_nothing_is_sent,
    a_watermark_only_moves_forward,
);

const KEY: &str = "receipt-email:in_456";

/// A server, and the destination `mail` as one that relays would have registered it.
async fn start(bed: Bed) -> (Api, Route) {
    bed.store.register_source(&format!("{OUTBOX}mail"), None).await.unwrap();
    let mail = bed.route(&format!("{OUTBOX}mail"), RouteRules::default()).await;
    (Api::start(bed).await, mail)
}

async fn take(api: &Api, event_id: &str) -> (ReceiptId, Value) {
    let receipt = api.event(event_id, "billing").await;
    (receipt, api.take("billing").await)
}

/// A message to `mail`.
fn mail(more: &Value) -> Value {
    let mut message = json!({ "destination": "mail", "key": KEY });
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

async fn stored(api: &Api, told: &Value) -> Receipt {
    let id: ReceiptId = told["message"].as_str().unwrap().parse().unwrap();
    api.bed.store.receipt(id).await.unwrap().expect("the receipt of a message")
}

fn header(receipt: &Receipt, name: &str) -> Option<String> {
    let headers = decode_headers(&receipt.headers);
    let value = headers.into_iter().find(|(own, _)| own == name)?.1;
    Some(String::from_utf8(value).unwrap())
}

async fn a_message_is_written_once(bed: Bed) {
    let (api, outbox) = start(bed).await;
    let (receipt, first) = take(&api, "evt_1").await;
    let (_, second) = take(&api, "evt_2").await;
    let message = mail(&json!({ "payload": { "to": "ada@example.com" } }));
    let sent = told(&api.say(&first, "send", message.clone()).await);
    assert_eq!(sent["status"], "sent", "{sent}");
    for claimed in [&first, &second] {
        let again = told(&api.say(claimed, "send", message.clone()).await);
        assert_eq!(again, json!({ "status": "duplicate", "message": sent["message"] }));
    }

    let kept_message = stored(&api, &sent).await;
    assert_eq!(kept_message.body, br#"{"to":"ada@example.com"}"#);
    let summary = &kept_message.summary;
    assert_eq!((summary.source.as_str(), summary.event_id.as_str()), ("outbox/mail", KEY));
    assert_eq!(summary.event_type, "message");
    assert_eq!(header(&kept_message, "content-type").as_deref(), Some("application/json"));
    let cause = header(&kept_message, "oncebox-cause");
    assert_eq!(cause.as_deref(), first["delivery"].as_str());
    assert_eq!(api.bed.states(&outbox).await, [format!("{KEY} received")]);

    let effect = kept(&api, &format!("outbox/mail/{KEY}")).await;
    assert_eq!((effect.kind, effect.state), (EffectKind::Message, EffectState::Done));
    assert_eq!(effect.delivery, api.route("billing").of(receipt));
    assert_eq!(effect.result, Some(sent["message"].to_string()));
    assert_eq!(effect.conflicts, 1, "by the second delivery alone");
    for (outcome, count) in [("sent", "1"), ("repeated", "2")] {
        let calls = format!(r#"oncebox_effect_calls_total{{route="billing",outcome="{outcome}"}}"#);
        assert_eq!(api.metric(&calls).await, count, "{outcome}");
    }
    // What sent it may fail: the message was written all the same.
    assert_eq!(api.say(&first, "fail", json!({})).await.status, 200);
    let claimed = api.bed.take(&outbox).await;
    assert_eq!(claimed.key, KEY, "its consumer knows it by the sender's key");
}

async fn the_first_payload_stands(bed: Bed) {
    let (api, _) = start(bed).await;
    let (_, first) = take(&api, "evt_1").await;
    let (_, second) = take(&api, "evt_2").await;
    let sent = told(&api.say(&first, "send", mail(&json!({ "payload": 1 }))).await);
    let conflict = told(&api.say(&second, "send", mail(&json!({ "payload": 2 }))).await);
    assert_eq!(conflict, json!({ "status": "conflict", "message": sent["message"] }));
    assert_eq!(stored(&api, &sent).await.body, b"1");
    let key = format!("outbox/mail/{KEY}");
    let conflicts = api.bed.store.effect_conflicts(&key, 10).await.unwrap();
    assert_eq!(conflicts.len(), 1);
    assert!(conflicts[0].differs);
    // The same payload from another delivery is noted as well.
    let (_, third) = take(&api, "evt_3").await;
    let repeated = told(&api.say(&third, "send", mail(&json!({ "payload": 1 }))).await);
    assert_eq!(repeated["status"], "duplicate");
    assert_eq!(api.metric("oncebox_effect_conflicts_total").await, "2");
}

async fn messages_of_a_group_are_numbered(bed: Bed) {
    let (api, _) = start(bed).await;
    let (_, claimed) = take(&api, "evt_1").await;
    let mut versions = Vec::new();
    for (key, group) in
        [("a", Some("cus_1")), ("b", Some("cus_1")), ("c", Some("cus_2")), ("d", None)]
    {
        let message = json!({ "destination": "mail", "key": key, "payload": {}, "group": group });
        let sent = told(&api.say(&claimed, "send", message).await);
        let summary = stored(&api, &sent).await.summary;
        assert_eq!(summary.object.as_deref(), group);
        versions.push(summary.version);
    }
    let [a, b, c, d] = versions.try_into().unwrap();
    assert!(a.is_some() && a < b && c.is_some() && d.is_none(), "{a:?} {b:?} {c:?} {d:?}");
}

async fn a_payload_goes_out_as_it_was_given(bed: Bed) {
    let (api, _) = start(bed).await;
    let (_, claimed) = take(&api, "evt_1").await;
    let binary = b"\xff\x00\xfe";
    let lease = claimed["lease"].as_str().unwrap();
    let path = format!("/deliveries/{}/send", claimed["delivery"].as_str().unwrap());
    let json_type = "application/json";
    let cases: [(String, &[u8], &str); 5] = [
        (
            r#""payload": { "z": 1.10, "a": [ 1e400 ] }"#.into(),
            br#"{"z":1.10,"a":[1e400]}"#,
            json_type,
        ),
        (r#""payload": null"#.into(), b"null", json_type),
        (r#""payload": "x", "content_type": "text/plain""#.into(), b"\"x\"", "text/plain"),
        (
            format!(r#""payload_base64": "{}""#, STANDARD.encode(binary)),
            binary,
            "application/octet-stream",
        ),
        (r#""payload_base64": """#.into(), b"", "application/octet-stream"),
    ];
    for (number, (payload, expected, content_type)) in cases.into_iter().enumerate() {
        let named = format!(r#""lease":"{lease}","destination":"mail","key":"k{number}""#);
        let answer = api.post_as(&api.token, &path, &format!("{{{named},{payload}}}")).await;
        let receipt = stored(&api, &told(&answer)).await;
        assert_eq!(receipt.body, expected, "{payload}");
        assert_eq!(header(&receipt, "content-type").as_deref(), Some(content_type));
    }
}

async fn a_destination_must_be_configured(bed: Bed) {
    let (api, _) = start(bed).await;
    let (receipt, claimed) = take(&api, "evt_1").await;
    for destination in ["sms", "mailer"] {
        let message = json!({ "destination": destination, "key": KEY, "payload": {} });
        let answer = api.say(&claimed, "send", message).await;
        let detail = assert_problem(&answer, 404, "not_found");
        assert!(detail.contains(&format!("[destinations.{destination}]")), "{detail}");
    }
    assert_eq!((api.bed.rows("effects"), api.bed.rows("receipts")), (0, 1));
    assert_eq!(api.row(receipt, "billing").await.state, State::Processing, "nothing is lost");
}

async fn without_a_good_lease_nothing_is_sent(bed: Bed) {
    let (api, _) = start(bed).await;
    let (receipt, claimed) = take(&api, "evt_1").await;
    api.bed.pass(61);
    let message = mail(&json!({ "payload": {} }));
    assert_problem(&api.say(&claimed, "send", message.clone()).await, 409, "lease_lost");
    let advance = json!({ "object": "in_1", "version": 1 });
    assert_problem(&api.say(&claimed, "advance", advance.clone()).await, 409, "lease_lost");
    let never = api.route("ledger").of(receipt);
    let never = json!({ "delivery": never.to_string(), "lease": claimed["lease"] });
    assert_problem(&api.say(&never, "send", message).await, 404, "not_found");
    assert_problem(&api.say(&never, "advance", advance).await, 404, "not_found");
    assert_eq!((api.bed.rows("effects"), api.bed.rows("receipts")), (0, 1));
    assert_eq!(api.bed.query("SELECT count(*) FROM lanes WHERE applied IS NOT NULL"), "0");
}

async fn a_watermark_only_moves_forward(bed: Bed) {
    let api = Api::start(bed).await;
    let (_, first) = take(&api, "evt_1").await;
    let (_, second) = take(&api, "evt_2").await;
    let versions = [(7, true), (7, true), (6, false), (i64::MIN, false), (9, true), (8, false)];
    for (number, (version, advances)) in versions.into_iter().enumerate() {
        let claimed = if number % 2 == 0 { &first } else { &second };
        let more = json!({ "object": "in_1", "version": version });
        let answer = told(&api.say(claimed, "advance", more).await);
        assert_eq!(answer, json!({ "advanced": advances }), "{version}");
    }
    let other = json!({ "object": "in_2", "version": -5 });
    assert_eq!(told(&api.say(&first, "advance", other).await), json!({ "advanced": true }));
    let applied = api.bed.query("SELECT object, applied FROM lanes ORDER BY object");
    assert_eq!(applied.trim(), "in_1|9\nin_2|-5");

    // Another route has a watermark of its own.
    api.event("evt_3", "ledger").await;
    let ledger = api.take("ledger").await;
    let more = json!({ "object": "in_1", "version": 1 });
    assert_eq!(told(&api.say(&ledger, "advance", more).await), json!({ "advanced": true }));
}
