//! Many events, a fifth of them sent again, some out of order, and a kill every two seconds.

use std::time::{Duration, Instant};

use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::wait;

use super::Service;
use super::door::Door;
use crate::bed::Bed;
use crate::chance::{Chance, rounds};
use crate::load::{Ledger, Load};

/// How many events; the full hundred thousand take minutes for each door.
const EVENTS: &str = "ONCEBOX_TEST_STORM";

/// How far apart kills are.
const BETWEEN_KILLS: Duration = Duration::from_secs(2);

#[test]
fn a_storm_through_the_rust_door_on_sqlite() {
    storm(&Service::open(Bed::sqlite(), Door::Rust));
}

#[test]
fn a_storm_through_the_rust_door_on_postgres() {
    storm(&Service::open(Bed::postgres(), Door::Rust));
}

#[test]
fn a_storm_through_handlers_beside_the_server() {
    storm(&Service::open(Bed::postgres(), Door::Beside));
}

#[test]
fn a_storm_through_the_sql_door() {
    storm(&Service::open(Bed::postgres(), Door::Sql));
}

#[test]
fn a_storm_through_the_http_door_on_sqlite() {
    storm(&Service::open(Bed::sqlite(), Door::Http));
}

#[test]
fn a_storm_through_the_http_door_on_postgres() {
    storm(&Service::open(Bed::postgres(), Door::Http));
}

fn storm(service: &Service) {
    let (mut chance, ledger) = (Chance::new(), Ledger::with_repeats(5));
    let mut crew = Crew::start(service);
    let (wanted, mut kills) = (events(service.door), 0);
    while ledger.answers().accepted < wanted {
        let load = Load::on(&ledger, crew.public(), &mut chance);
        let until = Instant::now() + BETWEEN_KILLS;
        while Instant::now() < until && ledger.answers().accepted < wanted {
            ledger.wait_for_acks(1 + chance.below(50));
        }
        chance.spin();
        crew.kill_one(&mut chance);
        kills += 1;
        load.stop();
        crew.revive(service);
    }
    assert_eq!(ledger.wrong(), Vec::<String>::new());
    // What is left is worked off under the same fire.
    while !wait::holds_within(BETWEEN_KILLS, || service.is_all_claimed()) {
        chance.spin();
        crew.kill_one(&mut chance);
        kills += 1;
        crew.revive(service);
    }
    service.rescue_left_behind();
    service.wait_until_all_finished();
    service.assert_once(&ledger.acknowledged(0));
    println!("{:?}, {kills} kills", ledger.answers());
}

fn events(door: Door) -> usize {
    let given = std::env::var(EVENTS).ok().map(|text| text.parse().expect("a number"));
    // Over HTTP an event is half a dozen requests, one after the other.
    let full = if door == Door::Http { 2_000 } else { 10_000 };
    given.unwrap_or_else(|| rounds(500, full))
}

/// A server and a worker, or a server with its handlers inside.
struct Crew {
    server: ServerProcess,
    worker: Option<ServerProcess>,
}

impl Crew {
    fn start(service: &Service) -> Self {
        if service.door == Door::Rust {
            return Self { server: service.work(None, None), worker: None };
        }
        let server = service.bed.serve();
        let worker = service.work(None, Some(&service.api(&server)));
        Self { server, worker: Some(worker) }
    }

    fn public(&self) -> std::net::SocketAddr {
        self.server.addresses().public
    }

    /// Kills the server or the worker.
    fn kill_one(&mut self, chance: &mut Chance) {
        match &mut self.worker {
            Some(worker) if chance.once_in(2) => worker.kill(),
            _ => self.server.kill(),
        };
    }

    /// Starts again what has died. A worker that lost its server dies with it: it has the
    /// address of the one before.
    fn revive(&mut self, service: &Service) {
        if self.server.has_ended() {
            if let Some(worker) = &mut self.worker {
                worker.kill();
            }
            *self = Self::start(service);
        } else if let Some(worker) = &mut self.worker
            && worker.has_ended()
        {
            *worker = service.work(None, Some(&service.api(&self.server)));
        }
    }
}

impl Service {
    /// Whether whatever is not finished is under a lease, of the living or the dead.
    fn is_all_claimed(&self) -> bool {
        let due = "SELECT 1 FROM deliveries WHERE state <> 'processing' LIMIT 1";
        self.look(due).is_empty()
    }

    /// Leases of the dead, unless a start has voided them.
    fn rescue_left_behind(&self) {
        if !(self.door == Door::Rust && self.bed.url.starts_with("sqlite://")) {
            self.rescue();
        }
    }
}
