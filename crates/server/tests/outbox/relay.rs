//! One message on its way: what the destination gets, and how often.

use bytes::Bytes;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::State;
use oncebox::effect::{EffectState, Message, Sent};
use oncebox_testkit::destination::{Behaviour, Received};
use oncebox_verify::{Keyring, Request, Secret, catalogue, verify};

use crate::bed::{Bed, MAILER, Place, QUICK, mail, on_each_store};

on_each_store!(
    a_message_is_delivered_once_under_its_key,
    a_failed_message_is_tried_again_under_its_key,
    a_destination_that_was_down_gets_what_it_missed,
    the_first_payload_of_a_key_stands,
    any_bytes_go_as_they_are,
    a_message_no_one_takes_is_dead_and_can_be_replayed,
);

/// One request: its bytes, its headers, a signature that verifies, and nothing about events.
async fn a_message_is_delivered_once_under_its_key(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    let id = bed.write(handler, &mail("receipt-email:in_456")).await;
    assert_eq!(bed.send(handler, &mail("receipt-email:in_456")).await, Sent::Before(id));
    let done = bed.until(id, State::Processed).await;
    assert_eq!((done.route.as_str(), done.counts.attempts), ("outbox/mailer", 1));

    let [request] = <[Received; 1]>::try_from(bed.destination.requests()).expect("one request");
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/messages?a=1"));
    assert_eq!(request.body, br#"{"mail":"receipt-email:in_456"}"#);
    let cause = handler.delivery.to_string();
    let ours: Vec<_> = request.headers.iter().filter(|(name, _)| is_told(name)).collect();
    let expected = [
        ("content-type", "application/json"),
        ("idempotency-key", "receipt-email:in_456"),
        ("oncebox-attempt", "1"),
        ("oncebox-cause", &cause),
        ("oncebox-destination", "mailer"),
        ("webhook-id", &id.to_string()),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut told: Vec<_> = ours.into_iter().cloned().collect();
    told.sort();
    assert_eq!(told, expected);
    assert_is_signed(&request);

    let effect = bed.store().effect("outbox/mailer/receipt-email:in_456").await.unwrap().unwrap();
    assert_eq!((effect.state, effect.delivery), (EffectState::Done, handler.delivery));
    assert_eq!(effect.result, Some(format!("\"{id}\"")));
}

/// The headers that say something about a message, without time and signature.
fn is_told(name: &str) -> bool {
    let ours = ["content-type", "idempotency-key", "webhook-id"];
    ours.contains(&name) || name.starts_with("oncebox-")
}

/// As any library for Standard Webhooks would check it.
#[track_caller]
fn assert_is_signed(request: &Received) {
    let provider = catalogue::find("standard-webhooks").unwrap();
    let keyring = Keyring::new(provider, vec![Secret::new(MAILER)]).unwrap();
    let mut headers = http::HeaderMap::new();
    for (name, value) in &request.headers {
        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let (url, body) = (request.target.as_str(), &request.body[..]);
    let signed = Request { method: "POST", url, headers: &headers, body };
    verify(provider, &keyring, &signed, SystemClock.now()).expect("the signature verifies");
}

async fn a_failed_message_is_tried_again_under_its_key(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::status(503));
    bed.destination.next(Behaviour::status(429));
    let id = bed.write(handler, &mail("m1")).await;
    let done = bed.until(id, State::Processed).await;
    assert_eq!((done.counts.attempts, done.counts.failures), (3, 2));
    let requests = bed.destination.requests();
    assert_eq!(requests.len(), 3);
    for (number, request) in (1..).zip(&requests) {
        assert_eq!(request.header("idempotency-key"), Some("m1"));
        assert_eq!(request.header("webhook-id"), Some(id.to_string().as_str()));
        assert_eq!(request.header("oncebox-attempt"), Some(format!("{number}").as_str()));
        assert_eq!(request.body, requests[0].body);
    }
    let attempts = bed.store().attempts(id).await.unwrap();
    let told: Vec<_> = attempts.iter().map(|one| (one.outcome.as_str(), one.status)).collect();
    assert_eq!(told, [("retry", Some(503)), ("retry", Some(429)), ("processed", Some(200))]);
}

/// It closes every connection, and then it is well again: nothing is lost, nothing comes twice.
async fn a_destination_that_was_down_gets_what_it_missed(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.always(Behaviour::Close);
    let ids = [bed.write(handler, &mail("m1")).await, bed.write(handler, &mail("m2")).await];
    for id in ids {
        bed.until(id, State::Retrying).await;
    }
    bed.destination.always(Behaviour::status(204));
    let missed = bed.destination.requests().len();
    for id in ids {
        bed.until(id, State::Processed).await;
    }
    let mut after: Vec<String> = bed.keys().split_off(missed);
    after.sort();
    after.dedup();
    assert_eq!(after, ["m1", "m2"]);
}

/// Another handler has other bytes for the same key. The first are sent, and the second are told
/// of, not sent.
async fn the_first_payload_of_a_key_stands(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let (first, second) = (bed.handler("evt_1").await, bed.handler("evt_2").await);
    let id = bed.write(first, &mail("m1")).await;
    let other = Message { payload: Bytes::from_static(b"{\"mail\":\"other\"}"), ..mail("m1") };
    assert_eq!(bed.send(second, &other).await, Sent::Conflict(id));
    bed.until(id, State::Processed).await;
    let next = bed.write(second, &mail("m2")).await;
    bed.until(next, State::Processed).await;
    let bodies: Vec<_> = bed.destination.requests().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies, [mail("m1").payload, mail("m2").payload]);
    let conflicts = bed.store().effect_conflicts("outbox/mailer/m1", 10).await.unwrap();
    let [conflict] = &conflicts[..] else { panic!("{conflicts:?}") };
    assert_eq!((conflict.receipt, conflict.differs), (second.delivery.receipt, true));
}

async fn any_bytes_go_as_they_are(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let message = Message {
        content_type: "application/octet-stream; a=\"b c\"".into(),
        payload: bytes.clone().into(),
        ..mail("caf\u{e9} 100%")
    };
    let id = bed.write(handler, &message).await;
    bed.until(id, State::Processed).await;
    let request = &bed.destination.requests()[0];
    assert!(request.body == bytes, "the bytes were changed");
    assert_eq!(request.header("content-type"), Some("application/octet-stream; a=\"b c\""));
    assert_eq!(request.header("idempotency-key"), Some("caf%C3%A9 100%25"));
}

async fn a_message_no_one_takes_is_dead_and_can_be_replayed(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::status(422));
    let id = bed.write(handler, &mail("m1")).await;
    bed.until(id, State::Dead).await;
    let dead = "oncebox_deliveries{route=\"outbox/mailer\",state=\"dead\"}";
    assert_eq!(bed.metric(dead).await, Some(1.0));
    bed.replay(id).await;
    let done = bed.until(id, State::Processed).await;
    assert_eq!((done.replays, done.counts.attempts), (1, 1));
    let requests = bed.destination.requests();
    assert_eq!(bed.keys(), ["m1", "m1"]);
    assert_eq!(requests[1].header("oncebox-replay"), Some("1"));
}
