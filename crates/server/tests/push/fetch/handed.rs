//! What the consumer is handed.

use oncebox::delivery::State;
use oncebox_testkit::destination::{Behaviour, Destination};

use super::{KEY, api, event_about, fetching, object};
use crate::bed::{Bed, Place, event, signed};
use crate::wire::assert_genuine;

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_has_the_event_and_the_object_on_sqlite() {
    envelope(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_has_the_event_and_the_object_on_postgres() {
    envelope(Place::postgres().await).await;
}

async fn envelope(place: Place) {
    let api = api("{\"id\": \"in_1\",\n \"status\": \"void\"}");
    let bed = Bed::on(place, "", &fetching(&api, "")).await;
    let mut draft = event("evt_1");
    // White space is part of what the provider signed.
    draft.body = [b" \n", &draft.body[..], b"\r\n "].concat();
    let draft = signed(draft);
    let body = draft.body.clone();
    let signature = draft.headers["stripe-signature"].to_str().unwrap().to_owned();
    let receipt = bed.send_draft(draft).await;
    let row = bed.until(receipt, State::Processed).await;
    assert_eq!(row.counts.attempts, 1);

    let asked = api.requests();
    let [get] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((get.method.as_str(), get.target.as_str()), ("GET", "/v1/invoices/in_1"));
    assert_eq!(get.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(get.header("accept"), Some("application/json"));
    assert_eq!(get.header("accept-encoding"), Some("identity"));
    assert!(get.header("user-agent").unwrap().starts_with("oncebox/"));
    assert!(get.header("host").unwrap().starts_with("api.test:"));
    assert_eq!(get.body, b"");

    let pushes = bed.destination.requests();
    let [push] = &pushes[..] else { panic!("{pushes:?}") };
    let current = b",\"current\":{\"id\": \"in_1\",\n \"status\": \"void\"}}";
    assert_eq!(push.body, [b"{\"event\":", &body[..], current].concat());
    let length: usize = push.header("oncebox-event-bytes").unwrap().parse().unwrap();
    assert_eq!(push.body[9..9 + length], body, "the provider's signature is over these");
    assert_eq!(push.header("stripe-signature"), Some(&*signature));
    assert_eq!(push.header("oncebox-current"), Some("found"));
    assert_eq!(push.all("content-type"), ["application/json"]);
    assert_eq!(push.header("authorization"), None);
    assert_genuine(push);
    let found = "oncebox_fetches_total{route=\"app\",outcome=\"found\"}";
    assert_eq!(bed.metric(found).await, Some(1.0));
    assert_eq!(bed.metric("oncebox_fetch_seconds_count{route=\"app\"}").await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_object_can_be_handed_over_alone() {
    let api = api("<any/> bytes");
    let bed = Bed::new(&fetching(&api, ", hand_over = \"object\"")).await;
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Processed).await;
    let push = &bed.destination.requests()[0];
    assert_eq!(push.body, b"<any/> bytes");
    assert_eq!(push.all("content-type"), ["application/json; charset=utf-8"]);
    assert_eq!(push.header("oncebox-current"), Some("found"));
    assert_eq!(push.header("oncebox-event-id"), Some("evt_1"));
    assert_genuine(push);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_gone_is_told() {
    for (hand_over, status) in [("envelope", 404), ("object", 410)] {
        let api = Destination::start();
        api.always(Behaviour::status(status));
        let bed = Bed::new(&fetching(&api, &format!(", hand_over = \"{hand_over}\""))).await;
        let receipt = bed.send("evt_1").await;
        bed.until(receipt, State::Processed).await;
        let push = &bed.destination.requests()[0];
        let body = String::from_utf8(push.body.clone()).unwrap();
        match hand_over {
            "object" => assert_eq!(body, "null"),
            _ => assert!(body.ends_with(",\"current\":null}"), "{body}"),
        }
        assert_eq!(push.header("oncebox-current"), Some("missing"), "{status}");
        assert_genuine(push);
        let missing = "oncebox_fetches_total{route=\"app\",outcome=\"missing\"}";
        assert_eq!(bed.metric(missing).await, Some(1.0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_may_give_up_what_is_gone() {
    let api = Destination::start();
    api.always(Behaviour::status(404));
    let bed = Bed::new(&fetching(&api, ", missing = \"dead\"")).await;
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    assert_eq!(row.detail.as_deref(), Some("fetch: the provider has no such object any more"));
    assert_eq!(row.counts.attempts, 1);
    assert_eq!(bed.destination.connections(), 0);
}

/// Of another type, or about nothing: the event as it came.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_fetched_for_is_delivered_as_it_came() {
    let api = api("{}");
    let bed = Bed::new(&fetching(&api, ", types = [\"invoice.*\", \"ping\"]")).await;
    let other = event_about("evt_1", "customer.created", Some("cus_1"));
    let mut none = event_about("evt_2", "ping", Some("in_1"));
    none.body = String::from_utf8(none.body).unwrap().replace("in_1", "").into_bytes();
    for draft in [other, signed(none)] {
        let body = draft.body.clone();
        let receipt = bed.send_draft(draft).await;
        bed.until(receipt, State::Processed).await;
        let push = bed.destination.requests().pop().unwrap();
        assert_eq!(push.body, body);
        assert_eq!(
            (push.header("oncebox-current"), push.header("oncebox-event-bytes")),
            (None, None)
        );
    }
    assert_eq!(api.connections(), 0);
}

/// A retry of the push asks again: the object may have changed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_has_the_object_of_its_time() {
    let api = api("2");
    api.next(object("1"));
    let bed = Bed::new(&fetching(&api, ", cache = \"0s\"")).await;
    bed.destination.next(Behaviour::status(500));
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Processed).await;
    let pushes = bed.destination.requests();
    let ends: Vec<_> = pushes.iter().map(|push| push.body[push.body.len() - 2]).collect();
    assert_eq!(ends, *b"12");
    let keys: Vec<_> = pushes.iter().map(|push| push.header("idempotency-key")).collect();
    assert_eq!(keys[0], keys[1]);
    pushes.iter().for_each(assert_genuine);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_headers_are_sent_as_configured() {
    let api = api("{}");
    let more = ", headers = { Stripe-Version = \"2026-01-28\", accept = \"text/plain\" }";
    let bed = Bed::new(&fetching(&api, more)).await;
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Processed).await;
    let get = &api.requests()[0];
    assert_eq!(get.all("accept"), ["text/plain"]);
    assert_eq!(get.header("stripe-version"), Some("2026-01-28"));
    assert_eq!(bed.destination.requests()[0].header("stripe-version"), None);
}
