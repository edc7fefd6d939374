//! A long backlog: drained within every limit, and without a herd when a destination comes back.

use oncebox::limits::CLAIM_ROWS;
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::http;
use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::store::query;
use oncebox_testkit::wait;

use super::BACKLOG_PATIENCE;
use crate::bed::{Bed, post};
use crate::chance::rounds;

/// How many deliveries wait; a million takes minutes.
const BACKLOG: &str = "ONCEBOX_TEST_BACKLOG";

/// More than the server needs at rest, and far less than the backlog weighs.
const MEMORY_MAX: u64 = 200 << 20;

#[test]
fn a_backlog_is_drained_within_every_limit_on_sqlite() {
    drained(&Bed::sqlite());
}

#[test]
fn a_backlog_is_drained_within_every_limit_on_postgres() {
    drained(&Bed::postgres());
}

fn drained(bed: &Bed) {
    let destination = Destination::start();
    let mut server = pile_up(bed, backlog());
    server.terminate();
    assert!(server.wait().success());
    bed.push_to(&destination, "concurrency = 4");
    let server = bed.serve();
    let all = backlog().to_string();
    let mut most_leased = 0;
    let finished = wait::holds_within(BACKLOG_PATIENCE, || {
        let leased = query(&bed.url, "SELECT count(*) FROM deliveries WHERE state = 'processing'");
        most_leased = most_leased.max(leased.parse::<usize>().expect("a count"));
        query(&bed.url, "SELECT count(*) FROM finished") == all
    });
    assert!(finished, "the backlog was not drained");
    assert_eq!(destination.requests().len(), backlog());
    // Those with the destination, a few claimed ahead of them, and one batch that has ended and
    // waits for its commit.
    assert!(most_leased <= CLAIM_ROWS + 64, "{most_leased} leases at the same time");
    let connections = destination.connections();
    assert!(connections <= 16, "{connections} connections for a concurrency of 4");
    let memory = server.memory_peak_bytes();
    assert!(memory < MEMORY_MAX, "{memory} bytes of memory");
}

/// Records one event, and copies of it inside the database: what matters is how many they are.
/// Their ids tell the same time, or retention would think some of them old.
fn pile_up(bed: &Bed, count: usize) -> ServerProcess {
    bed.configure(&[crate::bed::SECRET]);
    let server = bed.serve();
    assert_eq!(post(server.addresses().public, "evt_first").status, 202);
    let more = count - 1;
    let sqlite = bed.url.starts_with("sqlite://");
    let copies = match sqlite {
        true => format!(
            "INSERT INTO receipts (head, tail, source, received_at, event_id, trust, event_type,
                 object, version, secret, signed_at, routes, digest, headers, body)
             WITH RECURSIVE numbers (n) AS (
                 SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {more}
             )
             SELECT head + n, tail, source, received_at, event_id || n, trust, event_type, object,
                 version, secret, signed_at, routes, digest, headers, body
             FROM receipts, numbers"
        ),
        false => format!(
            "INSERT INTO receipts
             SELECT overlay(id::text PLACING lpad(to_hex(n), 12, '0') FROM 25)::uuid, received_at,
                 signed_at, version, source, secret, routes, trust, event_id || n, event_type,
                 object, digest, headers, body
             FROM receipts, generate_series(1, {more}) AS n"
        ),
    };
    query(&bed.url, &copies);
    let id = if sqlite { "head" } else { "id" };
    let due = if sqlite { "received_at" } else { "now()" };
    query(
        &bed.url,
        &format!(
            "INSERT INTO deliveries (receipt, route, source, state, created_at, due_at)
             SELECT r.{id}, t.no, r.source, 'received', r.received_at, {due}
             FROM receipts AS r, routes AS t
             WHERE NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.receipt = r.{id})"
        ),
    );
    server
}

fn backlog() -> usize {
    let given = std::env::var(BACKLOG).ok().map(|text| text.parse().expect("a number"));
    given.unwrap_or_else(|| rounds(5_000, 50_000))
}

#[test]
fn a_destination_that_is_down_is_left_alone_and_comes_back_gently() {
    let bed = Bed::sqlite();
    let destination = Destination::start();
    destination.always(Behaviour::status(503));
    let mut server = pile_up(&bed, 500);
    server.terminate();
    assert!(server.wait().success());
    let retry = "retry = { max_attempts = 50, base = \"100ms\", cap = \"1s\" }";
    bed.push_to(&destination, &format!("concurrency = 8\n{retry}"));
    let server = bed.serve();
    let admin = server.addresses().admin;
    wait::until("the breaker is open", || {
        let metrics = http::get(admin, "/metrics").expect("metrics").text();
        metrics.contains("oncebox_breaker_open{route=\"billing\"} 1")
    });
    // Those under way when it opened, and a probe now and then.
    let wasted = destination.requests().len();
    assert!(wasted < 40, "{wasted} requests to a destination that is down");

    destination.always(Behaviour::status(204));
    bed.wait_until_all_finished();
    assert_eq!(query(&bed.url, "SELECT count(*) FROM finished WHERE state = 'processed'"), "500");
}
