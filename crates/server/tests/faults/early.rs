//! Proof that the checker notices the worst bug there is: an acknowledgement before the commit.

use std::path::PathBuf;
use std::sync::Arc;

use oncebox::clock::SystemClock;
use oncebox::ingest::IngestOptions;
use oncebox::store::{self, Purpose};
use oncebox_server::config::Config;
use oncebox_server::logs;
use oncebox_server::server::{Listeners, Server};
use oncebox_testkit::gate::Gate;
use oncebox_testkit::process::ServerProcess;

use crate::bed::Bed;
use crate::chance::Chance;
use crate::checker::{Broken, block_on, check};
use crate::load::{Ledger, Load};

/// Tells the child its configuration.
const CHILD: &str = "ONCEBOX_FAULTS_CHILD";

/// A kill may come when everything happens to be written.
const ROUNDS: usize = 20;

#[test]
fn an_early_acknowledgement_on_sqlite_is_noticed() {
    losses_are_found(&Bed::sqlite());
}

#[test]
fn an_early_acknowledgement_on_postgres_is_noticed() {
    losses_are_found(&Bed::postgres());
}

fn losses_are_found(bed: &Bed) {
    let mut chance = Chance::new();
    let ledger = Ledger::new();
    let found = (0..ROUNDS).any(|_| {
        let mut server = ServerProcess::spawn(
            &std::env::current_exe().expect("the test has a file"),
            ["--exact", "early::in_a_child_a_server_acknowledges_too_early", "--nocapture"],
            [(CHILD, bed.home.config())],
        );
        let load = Load::on(&ledger, server.addresses().public, &mut chance);
        ledger.wait_for_acks(chance.between(20..200));
        server.kill();
        load.end();
        let broken = check(&ledger, &bed.url);
        broken.iter().any(|broken| matches!(broken, Broken::Lost(_)))
    });
    assert!(found, "{ROUNDS} kills lost nothing of {:?}", ledger.answers());
}

/// Not a test of its own: a server on a store that answers before it commits.
#[test]
fn in_a_child_a_server_acknowledges_too_early() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    // The test harness has begun a line of its own.
    println!();
    block_on(async {
        let config = Config::load(Some(&PathBuf::from(path))).expect("the configuration is good");
        let _logs = logs::init(&config.log).expect("logs");
        let listeners = Listeners::bind(&config).await.expect("free ports");
        let inner = store::open(config.store.url.as_str(), Purpose::Serve).await.expect("a store");
        let early = Gate::early(inner);
        let ingest = IngestOptions::default();
        let server = Server::start(config, early, Arc::new(SystemClock), ingest, listeners).await;
        let _server = server.expect("it starts");
        std::future::pending::<()>().await;
    });
}
