//! The connection to PostgreSQL breaks around a commit, and nobody knows whether it happened.

use oncebox_testkit::proxy::Proxy;

use crate::bed::{Bed, assert_unavailable, post, receipt};
use crate::chance::{Chance, rounds};
use crate::checker::{Row, rows};
use crate::load::{Ledger, Load};

#[test]
fn a_commit_whose_answer_is_lost_is_found_again() {
    cut_around_commits("after", Proxy::cut_after_client_bytes);
}

#[test]
fn a_commit_that_never_arrived_is_made_again() {
    cut_around_commits("before", Proxy::cut_before_client_bytes);
}

/// The event's id crosses the wire in the one statement that records it.
fn cut_around_commits(name: &str, arm: impl Fn(&Proxy, &[u8])) {
    let database = oncebox_testkit::store::database();
    let proxy = Proxy::to_url(database.url());
    let bed = Bed::at(proxy.url(database.url()));
    let server = bed.serve();
    let addr = server.addresses().public;
    for round in 1..=rounds(5, 50) {
        let id = format!("evt_{name}_{round}");
        arm(&proxy, id.as_bytes());
        let first = post(addr, &id);
        assert_eq!(proxy.cuts(), u64::try_from(round).expect("small"), "no cut in {round}");
        let retry = post(addr, &id);
        match first.status {
            202 => assert_eq!((retry.status, receipt(&retry)), (200, receipt(&first))),
            _ => assert_unavailable(&first),
        }
        let rows = rows(database.url());
        assert_eq!(rows.len(), round, "{rows:?}");
        assert!(rows.iter().any(|row| is(row, &id, &receipt(&retry))), "{retry:?}: {rows:?}");
    }
}

fn is(row: &Row, id: &str, receipt: &str) -> bool {
    row.event_id == id && row.receipt == receipt
}

/// The commit happens, its answer never comes, and the connection stays open. Its sender is told
/// to come back, and nobody else notices: another connection records.
#[test]
fn a_connection_that_falls_silent_holds_up_its_own_batch_only() {
    let database = oncebox_testkit::store::database();
    let proxy = Proxy::to_url(database.url());
    let bed = Bed::at(proxy.url(database.url()));
    let server = bed.serve();
    let addr = server.addresses().public;
    // Busy enough for every connection to be open.
    let ledger = Ledger::new();
    let load = Load::on(&ledger, addr, &mut Chance::new());
    ledger.wait_for_acks(200);
    load.stop();

    proxy.swallow_reply_to(b"evt_silent");
    assert_unavailable(&post(addr, "evt_silent"));
    proxy.wait_for_swallowed_reply();
    for n in 0..10 {
        assert_eq!(post(addr, &format!("evt_after_{n}")).status, 202);
    }
    assert_eq!(post(addr, "evt_silent").status, 200);
    let rows = rows(database.url());
    assert_eq!(rows.iter().filter(|row| row.event_id == "evt_silent").count(), 1, "{rows:?}");
}
