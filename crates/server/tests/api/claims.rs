//! Claiming: what a worker is told, how much it gets, and how it waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncebox::delivery::{Reason, State, idempotency_key};
use oncebox_testkit::for_each_store;
use oncebox_testkit::http::request_bytes;
use oncebox_testkit::store::{Bed, act};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{Api, with};

for_each_store!(
    a_worker_is_told_everything,
    a_body_that_is_no_text_comes_encoded,
    a_claim_gives_no_more_than_it_was_asked_for,
    what_has_no_version_is_counted,
    a_paused_route_gives_nothing,
    two_workers_never_share_a_delivery,
    a_waiting_worker_is_woken_by_an_event,
    what_does_not_fit_into_an_answer_goes_back,
    a_damaged_body_is_told_to_nobody,
);

/// The stored body is no longer what arrived.
async fn a_damaged_body_is_told_to_nobody(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    api.event("evt_2", "billing").await;
    let body = if api.bed.on_sqlite() { "x'7b7d'" } else { "'{}'" };
    let sql = format!("UPDATE receipts SET body = {body} WHERE event_id = 'evt_1'");
    api.bed.query(&sql);
    let answer = api.post("/routes/billing/claim", &json!({ "max": 10 })).await;
    let claimed = answer.json();
    let ids: Vec<_> = claimed["deliveries"].as_array().unwrap().iter().collect();
    assert_eq!((ids.len(), ids[0]["event_id"].as_str()), (1, Some("evt_2")), "{claimed}");
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.state, row.reason), (State::Held, Some(Reason::Damaged)));
    let metrics = api.server.inbox.metrics.encode();
    assert!(metrics.contains("oncebox_damaged_total{route=\"billing\"} 1"), "{metrics}");
}

async fn a_worker_is_told_everything(bed: Bed) {
    let api = Api::start(bed).await;
    let mut arrival = api.bed.arrival("evt_1", r#"{"id":"evt_1","größe":7}"#);
    arrival.takers = vec![api.route("billing").taker()];
    let receipt = api.bed.send(arrival).await;

    let claimed = api.take("billing").await;
    let id = format!("{receipt}.{}", api.route("billing").no.0);
    let lease = claimed["lease"].as_str().unwrap();
    assert_eq!(
        claimed,
        json!({
            "delivery": id,
            "lease": lease,
            "lease_until": claimed["lease_until"],
            "route": "billing",
            "source": "stripe-live",
            "event_id": "evt_1",
            "event_type": "invoice.paid",
            "object_id": "in_456",
            "object_version": 7,
            "receipt": receipt.to_string(),
            "received_at": "2025-10-09T08:53:20Z",
            "attempt": 1,
            "replay": 0,
            "key": idempotency_key("stripe-live", "evt_1", "billing", None),
            "headers": [["content-type", "application/json"]],
            "content_type": "application/json",
            "body": r#"{"id":"evt_1","größe":7}"#,
        })
    );
    let row = api.row(receipt, "billing").await;
    let until = row.lease_until.map(|until| until.to_string());
    assert_eq!(claimed["lease_until"].as_str(), until.as_deref());
    assert_eq!((row.state.as_str(), row.worker.as_deref()), ("processing", Some("token worker")));
}

async fn a_body_that_is_no_text_comes_encoded(bed: Bed) {
    let api = Api::start(bed).await;
    let event = api.bed.event("evt_1", &[api.route("billing")]);
    let bytes = b"\xff\x00\xfe";
    api.bed.send(api.bed.with_body(event, bytes)).await;

    let claimed = api.take("billing").await;
    assert_eq!(claimed["body_base64"], STANDARD.encode(bytes));
    assert_eq!(claimed.get("body"), None);
}

async fn a_claim_gives_no_more_than_it_was_asked_for(bed: Bed) {
    let api = Api::start(bed).await;
    for number in 0..12 {
        api.event(&format!("evt_{number}"), "billing").await;
    }
    api.event("evt_other", "ledger").await;

    let ids = |claimed: Vec<Value>| -> Vec<String> {
        claimed.iter().map(|one| one["event_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(api.claim("billing", &json!({ "max": 1 })).await), ["evt_0"]);
    let ten: Vec<String> = (1..11).map(|number| format!("evt_{number}")).collect();
    let answer = api.post_as(&api.token, "/routes/billing/claim", "").await;
    assert_eq!(ids(answer.json()["deliveries"].as_array().unwrap().clone()), ten);
    assert_eq!(ids(api.claim("billing", &json!({ "max": 256 })).await), ["evt_11"]);
    assert_eq!(ids(api.claim("billing", &json!({})).await), [] as [&str; 0]);
    assert_eq!(ids(api.claim("ledger", &json!({})).await), ["evt_other"]);
}

/// On a route that guards objects. Each is counted once, however often it is tried.
async fn what_has_no_version_is_counted(bed: Bed) {
    let api = Api::start(bed).await;
    let unversioned = |id: &str, route: &str| {
        let event = api.bed.event(id, &[api.route(route)]);
        oncebox::receipt::Arrival { object: Some("in_1".into()), ..event }
    };
    api.bed.send(unversioned("evt_0", "ledger")).await;
    api.take("ledger").await;
    api.server.reload(with("routes.billing", "stale = \"skip\"")).await.unwrap();
    api.event("evt_1", "billing").await;
    api.take("billing").await;
    let versioned =
        oncebox::receipt::Arrival { version: Some(1), ..unversioned("evt_2", "billing") };
    api.bed.send(versioned).await;
    let claimed = api.take("billing").await;
    assert_eq!(api.say(&claimed, "complete", json!({})).await.status, 200);
    let count = |route: &str| format!("oncebox_unversioned_total{{route=\"{route}\"}}");
    assert_eq!(api.metric(&count("billing")).await, "0");

    api.bed.send(unversioned("evt_3", "billing")).await;
    for _ in 0..2 {
        let claimed = api.take("billing").await;
        let failed = json!({ "class": "transient", "reason": "busy", "retry_after": "10s" });
        assert_eq!(api.say(&claimed, "fail", failed).await.status, 200);
        api.bed.pass(30);
    }
    assert_eq!(api.metric(&count("billing")).await, "1");
    assert_eq!(api.metric(&count("ledger")).await, "0");
}

async fn a_paused_route_gives_nothing(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    api.bed.store.pause_route("billing", true, &act("maintenance")).await.unwrap();
    assert_eq!(api.claim("billing", &json!({})).await, [] as [Value; 0]);

    // A worker that waits gets it once the route goes on.
    api.bed.store.pause_route("billing", false, &act("done")).await.unwrap();
    assert_eq!(api.claim("billing", &json!({ "wait": "20s" })).await.len(), 1);
}

async fn two_workers_never_share_a_delivery(bed: Bed) {
    let api = Arc::new(Api::start(bed).await);
    let events: Vec<_> = (0..90)
        .map(|number| api.bed.event(&format!("evt_{number}"), &[api.route("billing")]))
        .collect();
    api.bed.record(events).await;

    let worker = |api: Arc<Api>| async move {
        let mut mine = Vec::new();
        loop {
            let claimed = api.claim("billing", &json!({ "max": 7 })).await;
            if claimed.is_empty() {
                return mine;
            }
            for one in claimed {
                let done = api.say(&one, "complete", json!({})).await;
                assert_eq!(done.status, 200, "{done:?}");
                mine.push(one["event_id"].as_str().unwrap().to_owned());
            }
        }
    };
    let workers: Vec<_> = (0..4).map(|_| tokio::spawn(worker(api.clone()))).collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    assert_eq!(all.len(), 90);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), 90);
    assert_eq!(api.bed.rows("deliveries"), 0);
    assert_eq!(api.bed.rows("finished"), 90);
}

async fn a_waiting_worker_is_woken_by_an_event(bed: Bed) {
    let api = Arc::new(Api::start(bed).await);
    for round in 0..5 {
        let waiting = tokio::spawn({
            let api = api.clone();
            async move { api.claim("billing", &json!({ "wait": "30s" })).await }
        });
        let event_id = format!("evt_{round}");
        api.event(&event_id, "billing").await;
        let claimed = waiting.await.unwrap();
        assert_eq!(claimed.len(), 1, "{claimed:?}");
        assert_eq!(claimed[0]["event_id"], event_id);
    }
}

/// Two of three payloads of five megabytes do not fit into eight. They are claimed again as if
/// nothing had happened, and cost no attempt.
async fn what_does_not_fit_into_an_answer_goes_back(bed: Bed) {
    let api = Api::start(bed).await;
    let large = format!("\"{}\"", "x".repeat(5 << 20));
    for number in 0..3 {
        let event = api.bed.event(&format!("evt_{number}"), &[api.route("billing")]);
        api.bed.send(api.bed.with_body(event, &large)).await;
    }
    let mut seen = BTreeSet::new();
    while seen.len() < 3 {
        let claimed = api.claim("billing", &json!({ "wait": "20s" })).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!(claimed[0]["attempt"], 1);
        assert_eq!(claimed[0]["body"].as_str().unwrap().len(), large.len());
        seen.insert(claimed[0]["event_id"].as_str().unwrap().to_owned());
    }
}

/// A worker that waits does not keep the server from stopping.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_lets_waiting_workers_go() {
    let api = Api::start(Bed::sqlite().await).await;
    let bearer = format!("Bearer {}", api.token);
    let body = br#"{"wait":"30s"}"#;
    let request = request_bytes(
        "POST",
        "/api/v1/routes/billing/claim",
        &[("Authorization", &bearer), ("Expect", "100-continue"), ("Connection", "close")],
        body,
    );
    let (head, body) = request.split_at(request.len() - body.len());
    let mut stream = TcpStream::connect(api.server.admin).await.unwrap();
    stream.write_all(head).await.unwrap();
    // The server asks for the body once it has begun to answer.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body).await.unwrap();

    let stopping = tokio::spawn(api.server.stop());
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(r#"{"deliveries":[]}"#), "{answer}");
    stopping.await.unwrap();
}
