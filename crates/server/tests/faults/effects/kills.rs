//! A worker killed at every step of its way, again and again.

use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::proxy::Proxy;
use oncebox_testkit::wait;

use super::Service;
use super::door::{Death, Door};
use super::rust_door::NOTE;
use crate::bed::{Bed, ROUTE};
use crate::chance::{Chance, rounds};
use crate::load::{Ledger, Load};

#[test]
fn killed_at_every_step_through_the_rust_door_on_sqlite() {
    killed_inside(&Service::open(Bed::sqlite(), Door::Rust));
}

#[test]
fn killed_at_every_step_through_the_rust_door_on_postgres() {
    killed_inside(&Service::open(Bed::postgres(), Door::Rust));
}

#[test]
fn killed_at_every_step_through_handlers_beside_the_server() {
    killed_beside(&Service::open(Bed::postgres(), Door::Beside));
}

#[test]
fn handlers_beside_the_server_are_killed_around_commits() {
    killed_around_commits(&Service::open(Bed::postgres(), Door::Beside));
}

#[test]
fn killed_at_every_step_through_the_sql_door() {
    killed_beside(&Service::open(Bed::postgres(), Door::Sql));
}

#[test]
fn killed_at_every_step_through_the_http_door_on_sqlite() {
    killed_beside(&Service::open(Bed::sqlite(), Door::Http));
}

#[test]
fn killed_at_every_step_through_the_http_door_on_postgres() {
    killed_beside(&Service::open(Bed::postgres(), Door::Http));
}

/// Handlers live in the server: both die together, under load.
fn killed_inside(service: &Service) {
    let (mut chance, ledger) = (Chance::new(), Ledger::with_repeats(5));
    for step in service.door.steps() {
        for _ in 0..rounds(2, 15) {
            let death = Death { step, time: 1 + chance.below(8) };
            let mut server = service.work(Some(death), None);
            let load = Load::on(&ledger, server.addresses().public, &mut chance);
            wait::until("it dies", || server.has_ended());
            load.end();
            service.take_over();
        }
    }
    let server = service.work(None, None);
    let load = Load::on(&ledger, server.addresses().public, &mut chance);
    ledger.wait_for_acks(50);
    load.stop();
    finish(service, &ledger);
}

/// The worker dies beside a server that lives on.
fn killed_beside(service: &Service) {
    let (mut chance, ledger) = (Chance::new(), Ledger::with_repeats(5));
    let server = service.bed.serve();
    let api = service.api(&server);
    for step in service.door.steps() {
        for _ in 0..rounds(2, 15) {
            // More than the worker comes to do.
            let load = Load::on(&ledger, server.addresses().public, &mut chance);
            ledger.wait_for_acks(12);
            load.stop();
            let death = Death { step, time: 1 + chance.below(4) };
            let mut worker = service.work(Some(death), Some(&api));
            wait::until("it dies", || worker.has_ended());
            service.rescue();
        }
    }
    let _worker = service.work(None, Some(&api));
    finish(service, &ledger);
}

/// The worker dies once the end of an attempt is written and not committed, and once it is
/// committed: it hears of neither.
fn killed_around_commits(service: &Service) {
    let (mut chance, ledger) = (Chance::new(), Ledger::with_repeats(5));
    let server = service.bed.serve();
    for (said, is_kept) in [(NOTE, false), ("COMMIT\0", true)] {
        for _ in 0..rounds(2, 15) {
            let load = Load::on(&ledger, server.addresses().public, &mut chance);
            ledger.wait_for_acks(12);
            load.stop();
            let before = service.count_finished();
            let proxy = Proxy::to_url(&service.bed.url);
            proxy.swallow_reply_to(said.as_bytes());
            let mut worker = service.work_on(&proxy.url(&service.bed.url), None, None);
            proxy.wait_for_swallowed_reply();
            worker.kill();
            assert!(!is_kept || service.count_finished() > before, "it was no handler's commit");
            drop(proxy);
            service.rescue();
        }
    }
    let _worker = service.work(None, None);
    finish(service, &ledger);
}

fn finish(service: &Service, ledger: &Ledger) {
    assert_eq!(ledger.wrong(), Vec::<String>::new());
    service.wait_until_all_finished();
    service.assert_once(&ledger.acknowledged(0));
}

impl Service {
    /// The address of the API of a server, and a token for it.
    pub(super) fn api(&self, server: &ServerProcess) -> String {
        let run = self.bed.oncebox(&["token", "create", "worker", "--scope", "pull"]);
        assert_eq!(run.code, Some(0), "{run}");
        format!("{} {}", server.addresses().admin, run.stdout.trim())
    }

    /// How many deliveries of the service are finished; messages do not count.
    fn count_finished(&self) -> usize {
        let sql = format!(
            "SELECT count(*) FROM finished AS f JOIN routes AS t ON t.no = f.route
             WHERE t.name = '{ROUTE}'"
        );
        self.look(&sql).parse().expect("a count")
    }

    /// After a crash of everything: on SQLite a start voids all leases by itself.
    fn take_over(&self) {
        if !self.bed.url.starts_with("sqlite://") {
            self.rescue();
        }
    }
}
