//! PostgreSQL crashes, freezes and forgets, while the server stays up.

use std::time::{Duration, Instant};

use oncebox_testkit::postgres::{self, Server};

use crate::bed::{Bed, assert_says, assert_unavailable, post};
use crate::chance::{Chance, rounds};
use crate::checker::{assert_kept, check, rows};
use crate::load::{Ledger, Load};

/// The database is set to acknowledge commits before they are synced; the server's own sessions
/// must not, or the crashes would lose some.
#[test]
fn over_crashes_of_postgres_nothing_is_lost_and_nobody_is_lied_to() {
    if postgres::must_skip_own_server() {
        return;
    }
    let mut chance = Chance::new();
    let database =
        Server::start_with(&[("synchronous_commit", "off"), ("wal_writer_delay", "10s")]);
    let bed = Bed::at(database.url());
    let ledger = Ledger::new();
    let mut server = bed.serve();
    let load = Load::on(&ledger, server.addresses().public, &mut chance);
    for round in 0..rounds(3, 20) {
        ledger.wait_for_acks(chance.between(1..200));
        chance.spin();
        database.stop_immediate();
        ledger.wait_for_refusals(10);
        database.start_again();
        // Without a restart of ours.
        ledger.wait_for_acks(20);
        let wrong = ledger.wrong();
        assert!(wrong.is_empty(), "round {round}: {wrong:?}");
    }
    load.stop();
    assert!(!server.has_ended(), "{}", server.log());
    assert!(ledger.unanswered().is_empty(), "{:?}", ledger.unanswered());
    assert_kept(&check(&ledger, &bed.url), &ledger);
    println!("{:?}", ledger.answers());
}

#[test]
fn a_frozen_postgres_is_answered_in_time_and_does_not_wedge_the_server() {
    if postgres::must_skip_own_server() {
        return;
    }
    let database = Server::start();
    let bed = Bed::at(database.url());
    let server = bed.serve();
    let addr = server.addresses().public;
    assert_eq!(post(addr, "evt_before").status, 202);

    database.pause();
    let began = Instant::now();
    // More than there are writers, so that some wait in the queue and none has a connection.
    std::thread::scope(|scope| {
        let senders: Vec<_> =
            (0..8).map(|n| scope.spawn(move || post(addr, &format!("evt_frozen_{n}")))).collect();
        for sender in senders {
            assert_unavailable(&sender.join().expect("an answer"));
        }
    });
    let took = began.elapsed();
    assert!(took < Duration::from_secs(6), "answered after {took:?}");

    database.resume();
    for n in 0..8 {
        assert!(matches!(post(addr, &format!("evt_frozen_{n}")).status, 200 | 202));
    }
    assert_eq!(post(addr, "evt_before").status, 200);
    assert_eq!(post(addr, "evt_after").status, 202);
    assert_eq!(rows(&bed.url).len(), 10);
}

#[test]
fn a_postgres_that_may_lose_commits_is_refused() {
    if postgres::must_skip_own_server() {
        return;
    }
    for setting in ["fsync", "full_page_writes"] {
        let database = Server::start_with(&[(setting, "off")]);
        let bed = Bed::at(database.url());
        let mut server = bed.start_with(&[]);
        assert_eq!(server.wait().code(), Some(69), "{}", server.log());
        assert_says(&server, &format!("{setting} = off"));
        assert_says(&server, "Set all three to on");
    }
}
