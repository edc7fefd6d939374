//! A commit waits for a synchronous standby, and the wait is cut short. PostgreSQL then reports
//! success for a commit that no standby has.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use oncebox_testkit::postgres::{self, Server};
use oncebox_testkit::wait;

use crate::bed::{Bed, assert_unavailable, post, receipt};
use crate::checker::rows;

/// Those of our backends that wait for a standby.
const WAITING: &str = "SELECT pid FROM pg_stat_activity \
    WHERE wait_event = 'SyncRep' AND application_name LIKE 'oncebox/%' AND datname = current_database()";

#[test]
fn a_cancelled_wait_for_a_standby_is_never_acknowledged() {
    never_acknowledged("pg_cancel_backend");
}

#[test]
fn a_backend_ended_while_it_waits_for_a_standby_is_never_acknowledged() {
    never_acknowledged("pg_terminate_backend");
}

/// That commits wait at all shows, too, that the sessions do not take over the server's own
/// `synchronous_commit = off`.
fn never_acknowledged(cut: &str) {
    if postgres::must_skip_own_server() {
        return;
    }
    let database = Server::start_with(&[("synchronous_commit", "off")]);
    let url = database.url();
    let bed = Bed::at(url.clone());
    let server = bed.serve();
    let addr = server.addresses().public;
    assert_eq!(post(addr, "evt_before").status, 202);

    set_standby(&url, "nobody");
    let id = first_waiting(addr, &url);
    // A duplicate is no safer than its original.
    let began = Instant::now();
    let mut cuts = 0;
    let answer = std::thread::scope(|scope| {
        let retry = scope.spawn(|| post(addr, &id));
        let cut = WAITING.replacen("pid", &format!("{cut}(pid)"), 1);
        while !retry.is_finished() {
            cuts += postgres::query(&url, &cut).lines().count();
        }
        retry.join().expect("an answer")
    });
    assert_unavailable(&answer);
    assert!(cuts > 0, "no wait was cut");
    assert!(began.elapsed() < Duration::from_secs(6), "answered after {:?}", began.elapsed());

    set_standby(&url, "");
    wait::until("commits wait no longer", || post(addr, "evt_after").status != 503);
    let retry = post(addr, &id);
    assert!(matches!(retry.status, 200 | 202), "{retry:?}");
    let kept: Vec<_> = rows(&bed.url).into_iter().filter(|row| row.event_id == id).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].receipt, receipt(&retry));
}

/// Posts events until one is not acknowledged, because its commit waits, and returns its id. The
/// setting takes effect a moment after it is made.
fn first_waiting(addr: SocketAddr, url: &str) -> String {
    for n in 0..10_000 {
        let id = format!("evt_{n}");
        if post(addr, &id).status == 503 {
            assert!(!postgres::query(url, WAITING).is_empty(), "nobody waits for a standby");
            return id;
        }
    }
    panic!("commits never began to wait for a standby");
}

/// Names the standby that commits wait for, or none.
pub(crate) fn set_standby(url: &str, name: &str) {
    postgres::execute(url, &format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'"));
    postgres::execute(url, "SELECT pg_reload_conf()");
}
