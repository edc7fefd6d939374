//! Failover between two real PostgreSQL servers, promoted by hand. `make failover` does the same
//! with an agent that promotes.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use oncebox_testkit::postgres::{self, Server};
use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::{http, wait};

use self::told::compare;
use crate::bed::{Bed, post, receipt};
use crate::chance::Chance;
use crate::load::{Ledger, Load};
use crate::standby::set_standby;

mod told;

/// The longest pause between two acknowledgements that a failover may cost here: a node asks its
/// hosts every two seconds, and a host that hangs costs one connect time-out.
const GAP: Duration = Duration::from_secs(15);

/// A primary, its standby, and two nodes under load that know both by a bare list of hosts.
struct Pair {
    first: Server,
    second: Server,
    /// Held for its folder.
    _bed: Bed,
    nodes: [ServerProcess; 2],
    ledger: Arc<Ledger>,
    load: Option<Load>,
}

impl Pair {
    /// `synchronous`: each commit waits for the standby.
    fn start(synchronous: bool) -> Self {
        let first = Server::start();
        let second = Server::standby_of(&first);
        if synchronous {
            set_standby(&first.url(), "*");
        }
        let bed = Bed::at(hosts(&[first.port(), second.port()]));
        let nodes = [bed.serve(), bed.serve()];
        let ledger = Ledger::new();
        let addrs: Vec<SocketAddr> = nodes.iter().map(|node| node.addresses().public).collect();
        let load = Load::start(&ledger, &addrs.repeat(4), &mut Chance::new());
        ledger.wait_for_acks(200);
        Self { first, second, _bed: bed, nodes, ledger, load: Some(load) }
    }

    /// Waits until events are acknowledged again, and says how long none was.
    fn gap(&self, kind: &str) -> Duration {
        self.ledger.wait_for_acks(200);
        let gap = self.ledger.longest_gap();
        println!("{kind}: no acknowledgement for {gap:.1?}");
        gap
    }

    /// Ends the load and compares what its senders were told with what the second server holds.
    fn assert_nothing_lost_or_doubled(&mut self) {
        self.load.take().expect("the load runs").stop();
        let verdict = compare(&self.ledger, &self.second.url());
        let counts = (verdict.lost.len(), verdict.doubled.len());
        println!("lost, doubled: {counts:?} after {:?}", self.ledger.answers());
        assert!(verdict.is_good(), "{counts:?} {verdict:?}");
        for node in &mut self.nodes {
            assert!(!node.has_ended(), "{}", node.log());
        }
    }
}

fn hosts(ports: &[u16]) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("postgres://oncebox@{}/postgres?target_session_attrs=read-write", hosts.join(","))
}

#[test]
fn over_the_death_of_a_primary_nothing_is_lost() {
    if postgres::must_skip_own_server() {
        return;
    }
    let mut pair = Pair::start(true);
    pair.first.stop_immediate();
    pair.second.promote();
    let gap = pair.gap("primary killed");
    assert!(gap < GAP, "{gap:?}");
    pair.assert_nothing_lost_or_doubled();
}

/// The frozen primary keeps every connection open and answers none.
#[test]
fn over_a_frozen_primary_nothing_is_lost_and_ingest_recovers_fully() {
    if postgres::must_skip_own_server() {
        return;
    }
    let mut pair = Pair::start(true);
    pair.first.pause();
    pair.second.promote();
    let gap = pair.gap("primary frozen");
    assert!(gap < GAP, "{gap:?}");
    // While it is still frozen, the rate is what it was.
    let began = Instant::now();
    pair.ledger.wait_for_acks(1000);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "1000 events took {took:?}");
    pair.first.resume();
    pair.ledger.wait_for_acks(500);
    pair.assert_nothing_lost_or_doubled();
}

/// The old primary comes back writable, first in the list, and then the nodes' sessions break.
#[test]
fn an_old_primary_that_returns_is_refused() {
    if postgres::must_skip_own_server() {
        return;
    }
    let mut pair = Pair::start(true);
    pair.first.stop_immediate();
    pair.second.promote();
    pair.gap("primary killed");
    pair.first.start_again();
    set_standby(&pair.first.url(), "");
    let count = "SELECT count(*) FROM oncebox.receipts";
    let before = postgres::query(&pair.first.url(), count);
    for _ in 0..5 {
        postgres::execute(
            &pair.second.url(),
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'oncebox'",
        );
        pair.ledger.wait_for_acks(100);
    }
    pair.gap("old primary returned");
    pair.assert_nothing_lost_or_doubled();
    assert_eq!(postgres::query(&pair.first.url(), count), before, "recorded by the old primary");
}

/// A node that starts after the old primary has returned asks all hosts before it takes one.
#[test]
fn a_node_that_starts_takes_the_higher_timeline() {
    if postgres::must_skip_own_server() {
        return;
    }
    let first = Server::start();
    let second = Server::standby_of(&first);
    second.promote();
    let bed = Bed::at(hosts(&[first.port(), second.port()]));
    let node = bed.serve();
    let answer = post(node.addresses().public, "evt_1");
    assert_eq!(answer.status, 202);
    let stored = postgres::query(&second.url(), "SELECT id FROM oncebox.receipts");
    assert_eq!(stored, receipt(&answer));
}

/// The new primary is lost for good, and only the old one is left. Nodes refuse it until an operator
/// says otherwise, and then tell which of their receipts it does not have.
#[test]
fn an_adopted_old_primary_is_taken_and_its_missing_receipts_are_told() {
    if postgres::must_skip_own_server() {
        return;
    }
    let first = Server::start();
    let second = Server::standby_of(&first);
    let bed = Bed::at(hosts(&[first.port(), second.port()]));
    let node = bed.serve();
    let addresses = node.addresses();
    assert_eq!(post(addresses.public, "evt_1").status, 202);
    second.promote();
    node.wait_for_message("changed to another PostgreSQL primary");
    let lost = post(addresses.public, "evt_2");
    assert_eq!(lost.status, 202);
    wait::until("the node refuses the old primary", || {
        node.log().contains("refused a PostgreSQL that takes writes")
    });
    let ambiguous = bed.oncebox(&["store", "adopt", "--yes"]);
    assert_eq!(ambiguous.code, Some(1), "{ambiguous}");

    second.stop_immediate();
    for _ in 0..3 {
        assert_eq!(post(addresses.public, "evt_3").status, 503);
    }
    let adopted = bed.oncebox(&["store", "adopt", "--yes", "--reason", "the other is lost"]);
    assert_eq!(adopted.code, Some(0), "{adopted}");
    wait::until("the old primary is taken", || post(addresses.public, "evt_3").status == 202);
    let told = node.wait_for("a missing receipt", |line| {
        line.contains("acknowledged receipts are missing").then(|| line.to_owned())
    });
    assert!(told.contains(&receipt(&lost)), "{told}");
    let metrics = http::get(addresses.admin, "/metrics").expect("metrics").text();
    assert!(metrics.contains("oncebox_missing_receipts 1"), "{metrics}");
    assert!(bed.oncebox(&["audit", "list"]).stdout.contains("store.adopt"));
}

/// The first host takes connections and never says a word, as a frozen or blackholed one.
#[test]
fn a_first_host_that_hangs_is_passed_over_at_the_start_and_later() {
    let database = postgres::shared().database();
    let hanging = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = hanging.local_addr().expect("an address").port();
    let url = database.url().replacen('@', &format!("@127.0.0.1:{port},"), 1);
    let bed = Bed::at(url);
    let began = Instant::now();
    let node = bed.serve();
    let addr = node.addresses().public;
    assert_eq!(post(addr, "evt_1").status, 202);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    postgres::execute(
        database.url(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'oncebox' AND datname = current_database()",
    );
    let began = Instant::now();
    wait::until("an event is recorded", || post(addr, "evt_2").status != 503);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(bed.oncebox(&["receipts", "list"]).code, Some(0));
}

/// With its synchronous standby missing, no commit is answered; `/readyz` says so with and without
/// senders, and says when it is over.
#[test]
fn a_missing_synchronous_standby_makes_a_node_unready() {
    if postgres::must_skip_own_server() {
        return;
    }
    let database = Server::start();
    let bed = Bed::at(database.url());
    let node = bed.serve();
    let admin = node.addresses().admin;
    let ready = || http::get(admin, "/readyz").expect("an answer").status == 200;
    wait::until("the node is ready", ready);
    set_standby(&database.url(), "missing");
    let began = Instant::now();
    wait::until("the node is unready", || !ready());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    // It stays so, with senders and without.
    assert_eq!(post(node.addresses().public, "evt_1").status, 503);
    for _ in 0..5 {
        assert!(!ready());
    }
    set_standby(&database.url(), "");
    let began = Instant::now();
    wait::until("the node is ready again", ready);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(matches!(post(node.addresses().public, "evt_1").status, 200 | 202));
}
