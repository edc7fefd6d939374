//! Stops and reloads under load.

use std::time::{Duration, Instant};

use oncebox_testkit::http::Connection;

use crate::bed::{Bed, SECRET, body, signed_request};
use crate::chance::{Chance, rounds};
use crate::checker::{assert_kept, check, rows};
use crate::load::{Ledger, Load};

/// The default `drain_timeout`, and a little for the way there.
const DRAIN: Duration = Duration::from_secs(12);

#[test]
fn sigterm_answers_what_is_under_way_on_sqlite() {
    terminate_under_load(&Bed::sqlite());
}

#[test]
fn sigterm_answers_what_is_under_way_on_postgres() {
    terminate_under_load(&Bed::postgres());
}

fn terminate_under_load(bed: &Bed) {
    let mut chance = Chance::new();
    let ledger = Ledger::new();
    for round in 0..rounds(3, 30) {
        let mut server = bed.serve();
        let addr = server.addresses().public;
        let load = Load::on(&ledger, addr, &mut chance);
        let (mut slow, rest) = half_sent(addr, &format!("evt_slow_{round}"));
        ledger.wait_for_acks(chance.between(1..200));
        chance.spin();
        let began = Instant::now();
        server.terminate();
        server.wait_for_message("stopping: no new connections, requests under way are finished");
        slow.send(&rest).expect("the other half is read");
        let answer = slow.answer().expect("the other half is answered");
        assert_eq!(answer.status, 202, "{answer:?}");
        ledger.note(&format!("evt_slow_{round}"), &answer);

        assert!(server.wait().success(), "{}", server.log());
        assert!(began.elapsed() < DRAIN, "stopped after {:?}", began.elapsed());
        load.end();
    }
    // A request that crossed with the closing of an idle connection was never read. What was
    // read is answered, so nothing is recorded that was not.
    let rows = rows(&bed.url);
    let sent = ledger.sent();
    for id in ledger.unanswered() {
        let recorded = rows.iter().any(|row| row.event_id == id);
        assert!(!recorded || sent[&id].is_some(), "{id} was recorded, and nobody was told");
    }
    assert_kept(&check(&ledger, &bed.url), &ledger);
}

/// A request of which the server has one half, and the other half.
fn half_sent(addr: std::net::SocketAddr, id: &str) -> (Connection, Vec<u8>) {
    let mut request = signed_request(body(id), SECRET);
    let rest = request.split_off(request.len() - 20);
    let mut connection = Connection::open(addr).expect("it listens");
    connection.send(&request).expect("it reads");
    (connection, rest)
}

/// Each reload brings a new secret beside the one in use, and drops the one before.
#[test]
fn reloads_with_rotating_secrets_refuse_nobody() {
    let mut chance = Chance::new();
    let bed = Bed::sqlite();
    let ledger = Ledger::new();
    let server = bed.serve();
    let load = Load::on(&ledger, server.addresses().public, &mut chance);
    let mut current = SECRET.to_owned();
    for round in 1..=rounds(20, 100) {
        ledger.wait_for_acks(chance.between(20..100));
        let new = format!("whsec_faults_{round}");
        bed.configure(&[&new, &current]);
        let seen = server.lines();
        server.hang_up();
        server.wait_for_message_after(seen, "configuration reloaded");
        ledger.set_secret(&new);
        current = new;
    }
    // And a burst of them, which may run into each other.
    for _ in 0..20 {
        server.hang_up();
        ledger.wait_for_acks(1);
    }
    ledger.wait_for_acks(50);
    load.stop();
    let answers = ledger.answers();
    assert_eq!((ledger.wrong(), answers.unavailable), (vec![], 0), "{answers:?}");
    assert!(ledger.unanswered().is_empty(), "{:?}", ledger.unanswered());
    assert_kept(&check(&ledger, &bed.url), &ledger);
}
