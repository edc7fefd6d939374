//! A disk that is full, and one that stalls.

use std::time::{Duration, Instant};

use oncebox_testkit::faultfs::FaultFs;
use oncebox_testkit::http::Connection;

use crate::bed::{Bed, SECRET, assert_unavailable, body, post, receipt, signed_request};
use crate::chance::{Chance, rounds};
use crate::checker::{assert_kept, check, rows};
use crate::load::{Ledger, Load};

#[test]
fn a_full_disk_is_our_trouble_and_passes_by_itself() {
    let bed = Bed::sqlite();
    let faults = FaultFs::new(bed.home.path());
    let mut server = bed.serve_with(&faults.envs());
    let addr = server.addresses().public;
    assert_eq!(post(addr, "evt_before").status, 202);

    faults.disk_full(true);
    assert_unavailable(&post(addr, "evt_full"));
    // Even of what is kept nothing can be said: that it is durable would need a sync.
    assert_unavailable(&post(addr, "evt_before"));
    assert!(faults.refused_writes() > 0);
    let listed: Vec<_> = rows(&bed.url).into_iter().map(|row| row.event_id).collect();
    assert_eq!(listed, ["evt_before"]);

    faults.disk_full(false);
    assert_eq!(post(addr, "evt_full").status, 202);
    assert_eq!(post(addr, "evt_before").status, 200);
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    assert_eq!(rows(&bed.url).len(), 2);
}

/// The disk fills up in the middle of a transaction, wherever that is.
#[test]
fn a_disk_that_fills_up_under_load_leaves_no_half_rows() {
    let mut chance = Chance::new();
    let bed = Bed::sqlite();
    let faults = FaultFs::new(bed.home.path());
    let ledger = Ledger::new();
    let mut server = bed.serve_with(&faults.envs());
    let addr = server.addresses().public;
    for _ in 0..rounds(5, 40) {
        let load = Load::on(&ledger, addr, &mut chance);
        ledger.wait_for_acks(20);
        faults.disk_full_after(u32::try_from(chance.below(200_000)).expect("small"));
        ledger.wait_for_refusals(5);
        faults.disk_full(false);
        ledger.wait_for_acks(20);
        load.stop();
    }
    // An event that was refused is there as a whole or not at all, and a retry says which.
    let there: Vec<_> = rows(&bed.url).into_iter().map(|row| row.event_id).collect();
    for id in ledger.open() {
        let answer = post(addr, &id);
        let expected = if there.contains(&id) { 200 } else { 202 };
        assert_eq!(answer.status, expected, "{id}: {answer:?}");
        ledger.note(&id, &answer);
    }
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    assert_kept(&check(&ledger, &bed.url), &ledger);
}

#[test]
fn a_stalled_disk_is_answered_in_time_and_its_late_commit_absorbs_the_retry() {
    let bed = Bed::sqlite();
    let faults = FaultFs::new(bed.home.path());
    let server = bed.serve_with(&faults.envs());
    let addr = server.addresses().public;
    assert_eq!(post(addr, "evt_before").status, 202);

    faults.stall_syncs(true);
    let began = Instant::now();
    // One is under way when the disk stalls; the other waits behind it.
    let mut waiting: Vec<_> = ["evt_first", "evt_behind"]
        .map(|id| {
            let mut connection = Connection::open(addr).expect("it listens");
            connection.send(&signed_request(body(id), SECRET)).expect("it reads");
            faults.wait_for(FaultFs::stalls, 1);
            connection
        })
        .into();
    for connection in &mut waiting {
        let answer = connection.answer_within(Duration::from_secs(10));
        assert_unavailable(&answer.expect("an answer while the disk stalls"));
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(6), "answered after {took:?}");

    faults.stall_syncs(false);
    let late = post(addr, "evt_first");
    assert_eq!(late.status, 200, "{late:?}");
    assert!(matches!(post(addr, "evt_behind").status, 200 | 202));
    let rows = rows(&bed.url);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows.iter().any(|row| row.receipt == receipt(&late)), "{rows:?}");
}
