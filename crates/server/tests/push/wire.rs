//! What a push looks like on the wire.

use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::delivery::State;
use oncebox_testkit::destination::{Behaviour, Received};
use oncebox_verify::{Keyring, Request, Secret, catalogue, verify};

use crate::bed::{APP, Bed, QUICK, event, now, signed};

/// The consumer's side: is it genuine?
pub(crate) fn assert_genuine(push: &Received) {
    let mut headers = HeaderMap::new();
    for (name, value) in &push.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    let standard = catalogue::find("standard-webhooks").unwrap();
    let keyring = Keyring::new(standard, vec![Secret::new(APP)]).unwrap();
    let request =
        Request { method: &push.method, url: &push.target, headers: &headers, body: &push.body };
    verify(standard, &keyring, &request, now()).expect("a signature of Standard Webhooks");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_carries_the_event_and_our_headers() {
    let bed = Bed::new(QUICK).await;
    let mut draft = event("evt_1");
    draft.headers.insert("webhook-id", HeaderValue::from_static("theirs"));
    draft.headers.insert("authorization", HeaderValue::from_static("Bearer canary"));
    draft.headers.insert("x-custom", HeaderValue::from_static("kept"));
    let body = draft.body.clone();
    let signature = draft.headers["stripe-signature"].to_str().unwrap().to_owned();
    let receipt = bed.send_draft(draft).await;

    let row = bed.until(receipt, State::Processed).await;
    let pushes = bed.destination.requests();
    let [push] = &pushes[..] else { panic!("{pushes:?}") };
    assert_eq!((push.method.as_str(), push.target.as_str()), ("POST", "/hook?a=1"));
    assert_eq!(push.body, body, "the body, byte for byte");
    assert_genuine(push);
    let key = push.header("idempotency-key").unwrap();
    assert!(key.starts_with("ob_"), "{key}");
    let port = bed.destination.address().port();
    let host = format!("app.test:{port}");
    let expected = [
        ("host", Some(host.as_str())),
        ("content-type", Some("application/json")),
        ("webhook-id", Some(key)),
        ("stripe-signature", Some(signature.as_str())),
        ("oncebox-source", Some("stripe")),
        ("oncebox-event-id", Some("evt_1")),
        ("oncebox-event-type", Some("invoice.paid")),
        ("oncebox-object-id", Some("in_1")),
        ("oncebox-attempt", Some("1")),
        ("oncebox-replay", None),
        ("oncebox-original-webhook-id", Some("theirs")),
        ("x-custom", Some("kept")),
        ("authorization", None),
    ];
    for (name, value) in expected {
        assert_eq!(push.header(name), value, "{name}");
        assert!(push.all(name).len() <= 1, "{name}: {:?}", push.all(name));
    }
    assert!(push.header("oncebox-object-version").is_some());
    assert_eq!((row.counts.attempts, row.counts.failures), (1, 0));
    assert_eq!(
        bed.metric("oncebox_attempts_total{route=\"app\",outcome=\"processed\"}").await,
        Some(1.0)
    );
}

/// Headers that a sender calls like ours would tell the consumer that nobody verified the event, or
/// which URL was signed.
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_does_not_speak_for_us() {
    let bed = Bed::new(QUICK).await;
    let mut draft = event("evt_1");
    for (name, value) in [
        ("oncebox-trust", "unverified"),
        ("oncebox-request", "PUT /elsewhere"),
        ("oncebox-signed-url", "https://elsewhere.test/"),
        ("oncebox-original-webhook-id", "theirs"),
        ("oncebox-replay", "9"),
    ] {
        draft.headers.insert(name, HeaderValue::from_static(value));
    }
    let receipt = bed.send_draft(draft).await;
    bed.until(receipt, State::Processed).await;
    let pushes = bed.destination.requests();
    let names = pushes[0].headers.iter().map(|(name, _)| name.as_str());
    let mut ours: Vec<_> = names.filter(|name| name.starts_with("oncebox-")).collect();
    ours.sort_unstable();
    let expected = "attempt event-id event-type object-id object-version received-at source";
    let expected: Vec<_> = expected.split(' ').map(|name| format!("oncebox-{name}")).collect();
    assert_eq!(ours, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_bytes_arrive_as_they_came() {
    let bed = Bed::new(QUICK).await;
    let mut draft = event("evt_1");
    let padded = format!(" \t\n{} \r\n", String::from_utf8(draft.body).unwrap());
    draft.body = padded.replace("evt_1", "evt_é\u{1f980}%").into_bytes();
    let draft = signed(draft);
    let body = draft.body.clone();
    let receipt = bed.send_draft(draft).await;
    bed.until(receipt, State::Processed).await;
    let pushes = bed.destination.requests();
    assert_eq!(pushes[0].body, body);
    let id = pushes[0].header("oncebox-event-id");
    assert_eq!(id, Some("evt_%C3%A9%F0%9F%A6%80%25"));
}

/// Larger than any buffer on the way.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_arrives_whole() {
    let bed = Bed::new(QUICK).await;
    let mut draft = event("evt_1");
    let body = String::from_utf8(draft.body).unwrap();
    let padding = "x".repeat(3 << 20);
    draft.body = body.replacen('{', &format!("{{\"padding\":\"{padding}\","), 1).into_bytes();
    let draft = signed(draft);
    let body = draft.body.clone();
    let receipt = bed.send_draft(draft).await;
    bed.until(receipt, State::Processed).await;
    let push = &bed.destination.requests()[0];
    assert!(push.body == body, "{} bytes came of {}", push.body.len(), body.len());
    assert_genuine(push);
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_keep_the_key_and_count_the_attempt() {
    let bed = Bed::new(QUICK).await;
    bed.destination.next(Behaviour::status(500));
    bed.destination.next(Behaviour::status(503));
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Processed).await;
    assert_eq!((row.counts.attempts, row.counts.failures), (3, 2));
    let pushes = bed.destination.requests();
    let attempts: Vec<_> = pushes.iter().map(|push| push.header("oncebox-attempt")).collect();
    assert_eq!(attempts, [Some("1"), Some("2"), Some("3")]);
    let keys: Vec<_> = pushes.iter().map(|push| push.header("idempotency-key")).collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    pushes.iter().for_each(assert_genuine);
    let attempts = bed.attempts(receipt).await;
    let told: Vec<_> = attempts.iter().map(|a| (a.outcome.as_str(), a.status)).collect();
    assert_eq!(told, [("retry", Some(500)), ("retry", Some(503)), ("processed", Some(200))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_used_again() {
    let bed = Bed::new(QUICK).await;
    for number in 0..5 {
        let receipt = bed.send(&format!("evt_{number}")).await;
        bed.until(receipt, State::Processed).await;
    }
    assert_eq!(bed.destination.requests().len(), 5);
    assert_eq!(bed.destination.connections(), 1);
}
