//! What a claim gives and takes, and what an ending leaves.

use std::collections::HashSet;

use bytes::Bytes;
use oncebox::delivery::idempotency_key;
use oncebox::limits;
use oncebox::receipt::{Arrival, RouteNo};
use oncebox::route::RouteRules;
use oncebox_testkit::store::{Bed, Route, act};

use super::session::Session;

async fn plain(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

async fn record_many(bed: &Bed, route: Route, count: usize) {
    let events = (0..count).map(|n| bed.event(&format!("e{n}"), &[route]));
    bed.record(events.collect()).await;
}

/// The whole way, and the rows it leaves.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_claimed_and_processed() {
    let bed = Bed::postgres().await;
    let route = plain(&bed).await;
    let headers = b"content-type: application/json\nx-a: 1\nx-b: caf\xe9\nx-a: 2: 3\nx-c: \n";
    let event = Arrival {
        object: Some("in_456".into()),
        version: Some(7),
        headers: Bytes::from_static(headers),
        ..bed.with_body(bed.event("evt_1", &[route]), b"\x00\xff")
    };
    let receipt = bed.send(event).await;
    let session = Session::open(&bed).await;
    session.run("SET application_name = 'python #3'").await;
    let sql =
        "SELECT delivery, lease, receipt, source, event_id, event_type, object_id, object_version,
        extract(epoch FROM received_at)::bigint, attempt, replay, key, headers::text, body
        FROM oncebox.claim('billing')";
    let rows = session.rows(sql, &[]).await;
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    let (delivery, lease): (String, i64) = (row.get(0), row.get(1));
    assert_eq!(delivery, route.of(receipt).to_string());
    assert_eq!(row.get::<_, uuid::Uuid>(2), receipt.as_uuid());
    let texts: Vec<&str> = (3..7).map(|column| row.get(column)).collect();
    assert_eq!(texts, ["stripe-live", "evt_1", "invoice.paid", "in_456"]);
    assert_eq!((row.get(7), row.get(8)), (7_i64, oncebox_testkit::store::NOON));
    assert_eq!((row.get(9), row.get(10)), (1_i32, 0_i32));
    assert_eq!(row.get::<_, &str>(11), idempotency_key("stripe-live", "evt_1", "billing", None));
    let expected =
        r#"{"x-a": ["1", "2: 3"], "x-b": "café", "x-c": "", "content-type": "application/json"}"#;
    assert_eq!(row.get::<_, &str>(12), expected);
    assert_eq!(row.get::<_, &[u8]>(13), b"\x00\xff");

    let claimed = bed.delivery(route.of(receipt)).await;
    assert_eq!(claimed.counts.attempts, 1);
    assert_eq!(claimed.worker.as_deref(), Some("python #3"));
    let leased = "SELECT state, attempts, epoch, epoch >> 20, claimed_in IS NOT NULL,
        lease_until BETWEEN now() + interval '20 seconds' AND now() + interval '30 seconds'
        FROM deliveries";
    assert_eq!(bed.query(leased), format!("processing|1|{lease}|1|t|t"));
    assert!(session.claim("billing", 10).await.is_empty());

    let sql = "SELECT oncebox.finish($1, $2, note => 'paid')";
    let done = session.rows(sql, &[&delivery, &lease]).await;
    assert_eq!(done[0].get::<_, &str>(0), "processed");
    assert_eq!(bed.rows("deliveries"), 0);
    assert_eq!(bed.rows("attempts"), 0);
    let finished = "SELECT receipt, route, source, state, reason, epoch, attempts, failures,
        crashes, snoozes, replays, laned, status, took_ms IS NOT NULL, detail, summary
        FROM finished";
    let expected = format!("{receipt}|1|1|processed||{lease}|1|0|0|0|0|f||t||paid");
    assert_eq!(bed.query(finished), expected);
}

/// A rename keeps keys, and so does an outbox message whatever carries it.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_those_of_the_other_doors() {
    let bed = Bed::postgres().await;
    let route = plain(&bed).await;
    bed.due("evt_ü", &[route]).await;
    let rules = RouteRules::default();
    bed.store.register_route("invoices", Some("billing"), &rules).await.unwrap();
    bed.store.register_source("stripe", Some("stripe-live")).await.unwrap();
    let session = Session::open(&bed).await;
    let sql = "SELECT key, source FROM oncebox.claim('invoices')";
    let rows = session.rows(sql, &[]).await;
    assert_eq!(rows[0].get::<_, &str>(0), idempotency_key("stripe-live", "evt_ü", "billing", None));
    assert_eq!(rows[0].get::<_, &str>(1), "stripe");

    let outbox = bed.store.register_source("outbox/email", None).await.unwrap();
    let route = bed.route("outbox/email", rules).await;
    let message = Arrival { source: outbox, ..bed.event("receipt-email:in_456", &[route]) };
    bed.send(message).await;
    let rows = session.rows("SELECT key FROM oncebox.claim('outbox/email')", &[]).await;
    assert_eq!(rows[0].get::<_, &str>(0), "receipt-email:in_456");
}

/// Values in UTF-8 are read as such; what no text can have is left out.
#[tokio::test(flavor = "multi_thread")]
async fn headers_are_read_whatever_they_hold() {
    let bed = Bed::postgres().await;
    let session = Session::open(&bed).await;
    for (lines, expected) in [
        (&b""[..], "{}"),
        (b"no colon", "{}"),
        (b"X-A: \xc3\xa9\n", r#"{"x-a": "é"}"#),
        (b"x-a: \xe9\n", r#"{"x-a": "é"}"#),
        (b"x-a: 1\x002\nx-a:\nx-a:3\n", r#"{"x-a": ["12", "", ""]}"#),
        (b": v\n", r#"{"": "v"}"#),
    ] {
        let rows = session.rows("SELECT oncebox.headers_of($1)::text", &[&lines]).await;
        assert_eq!(rows[0].get::<_, &str>(0), expected, "{lines:?}");
    }
}

/// Oldest first, and never more than wanted or than the limit of one claim.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_claimed_than_wanted() {
    let bed = Bed::postgres().await;
    let route = plain(&bed).await;
    record_many(&bed, route, limits::CLAIM_ROWS + 10).await;
    bed.backdate("e7", 1000);
    let session = Session::open(&bed).await;
    let of = |work: Vec<super::session::Work>| -> Vec<String> {
        work.into_iter().map(|work| work.event_id).collect()
    };
    assert_eq!(of(session.claim("billing", 3).await), ["e7", "e0", "e1"]);
    let many = session.claim("billing", 1_000_000).await;
    assert_eq!(many.len(), limits::CLAIM_ROWS);
    assert_eq!(session.claim("billing", 1_000_000).await.len(), 7);
}

/// What is larger than an answer may be comes alone, and otherwise answers are filled.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_room_for_so_many_bytes() {
    let bed = Bed::postgres().await;
    for (name, ordered) in [("plain", false), ("ordered", true)] {
        let rules = RouteRules { ordered, ..RouteRules::default() };
        let route = bed.route(name, rules).await;
        let third = limits::PULL_BYTES / 3;
        for (n, bytes) in [limits::PULL_BYTES + 1, third, third, third, 10].iter().enumerate() {
            let event = bed.event(&format!("{name}-{n}"), &[route]);
            bed.send(bed.with_body(event, "x".repeat(*bytes))).await;
        }
        let session = Session::open(&bed).await;
        let mut given = Vec::new();
        for _ in 0..4 {
            given.push(session.claim(name, 10).await.len());
        }
        // Headers count as well, so three thirds are a little too much.
        assert_eq!(given, [1, 2, 2, 0], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_route_gives_nothing() {
    let bed = Bed::postgres().await;
    let route = plain(&bed).await;
    bed.due("e1", &[route]).await;
    assert!(bed.store.pause_route("billing", true, &act("")).await.unwrap());
    let session = Session::open(&bed).await;
    assert!(session.claim("billing", 10).await.is_empty());
    assert!(bed.store.pause_route("billing", false, &act("")).await.unwrap());
    assert_eq!(session.take("billing").await.event_id, "e1");
}

/// Eight sessions at once: every delivery once.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_never_claim_the_same() {
    let bed = Bed::postgres().await;
    let route = plain(&bed).await;
    record_many(&bed, route, 200).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let session = Session::open(&bed).await;
        tasks.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let work = session.claim("billing", 7).await;
                assert!(work.len() <= 7);
                if work.is_empty() {
                    return mine;
                }
                mine.extend(work.into_iter().map(|work| work.delivery));
            }
        });
    }
    let all: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(all.len(), 200);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 200);
    assert_eq!(bed.query("SELECT sum(attempts) FROM deliveries"), "200");
}

/// A claim that is not committed is nobody's, and one that is rolled back never was.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_rolled_back_was_none() {
    let bed = Bed::postgres().await;
    let route = plain(&bed).await;
    bed.due("e1", &[route]).await;
    let (one, two) = (Session::open(&bed).await, Session::open(&bed).await);
    one.run("BEGIN").await;
    assert_eq!(one.claim("billing", 1).await.len(), 1);
    assert!(two.claim("billing", 1).await.is_empty());
    one.run("ROLLBACK").await;
    let work = two.take("billing").await;
    assert_eq!((work.attempt, work.event_id.as_str()), (1, "e1"));
}

/// One event, two routes: each has its own delivery of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_of_its_own_route() {
    let bed = Bed::postgres().await;
    let (one, two) = (plain(&bed).await, bed.route("mail", RouteRules::default()).await);
    bed.due("e1", &[one, two]).await;
    let session = Session::open(&bed).await;
    let work = session.take("mail").await;
    assert_eq!(work.delivery.parse::<oncebox::delivery::DeliveryId>().unwrap().route, RouteNo(2));
    assert!(session.claim("mail", 10).await.is_empty());
    assert_eq!(session.claim("billing", 10).await.len(), 1);
}
