//! Two servers on one PostgreSQL, killed and restarted at random under load: every event reaches
//! the destination at least once under one key, nothing is lost, nothing is stuck.

use oncebox_testkit::destination::Destination;
use oncebox_testkit::process::ServerProcess;

use super::assert_delivered;
use crate::bed::Bed;
use crate::chance::{Chance, rounds};
use crate::load::{Ledger, Load};

#[test]
fn two_servers_killed_at_random_deliver_every_event() {
    let bed = Bed::postgres();
    let destination = Destination::start();
    bed.push_to(&destination, "");
    let mut chance = Chance::new();
    let ledger = Ledger::with_repeats(5);
    let wanted = rounds(3_000, 50_000);
    let mut servers = [bed.serve(), bed.serve()];
    while ledger.answers().acknowledged() < wanted {
        let load = load(&ledger, &servers, &mut chance);
        ledger.wait_for_acks(chance.between(100..1500));
        chance.spin();
        let victims = if chance.once_in(3) { vec![0, 1] } else { vec![chance.below(2)] };
        for victim in &victims {
            servers[*victim].kill();
        }
        load.stop();
        for victim in victims {
            servers[victim] = bed.serve();
        }
    }
    // A sender does not give up what was not acknowledged.
    let load = load(&ledger, &servers, &mut chance);
    ledger.wait_for_acks(100);
    load.stop();
    assert_eq!(ledger.wrong(), Vec::<String>::new());
    bed.wait_until_backlog_is_finished();
    let acknowledged = ledger.acknowledged(0);
    assert_delivered(&destination, &acknowledged);
    let processed = bed.look("SELECT count(*) FROM finished WHERE state = 'processed'");
    assert_eq!(processed, bed.look("SELECT count(*) FROM receipts"));
    let requests = destination.requests().len();
    println!("{:?}, {requests} requests for {} events", ledger.answers(), acknowledged.len());
}

#[test]
fn servers_restarted_in_turn_under_load_deliver_every_event() {
    let bed = Bed::postgres();
    let destination = Destination::start();
    bed.push_to(&destination, "");
    let mut chance = Chance::new();
    let ledger = Ledger::new();
    let mut servers = [bed.serve(), bed.serve()];
    for round in 0..rounds(4, 20) {
        let load = load(&ledger, &servers, &mut chance);
        ledger.wait_for_acks(chance.between(20..200));
        let turn = round % 2;
        servers[turn].terminate();
        assert!(servers[turn].wait().success());
        load.stop();
        servers[turn] = bed.serve();
    }
    assert_eq!(ledger.wrong(), Vec::<String>::new());
    bed.wait_until_backlog_is_finished();
    let acknowledged = ledger.acknowledged(0);
    assert_delivered(&destination, &acknowledged);
    // Nobody died, so nothing was tried twice.
    assert_eq!(bed.look("SELECT count(*) FROM finished WHERE crashes > 0"), "0");
}

/// Four senders to each server.
fn load(
    ledger: &std::sync::Arc<Ledger>,
    servers: &[ServerProcess; 2],
    chance: &mut Chance,
) -> Load {
    let addrs: Vec<_> = servers.iter().flat_map(|each| [each.addresses().public; 4]).collect();
    Load::start(ledger, &addrs, chance)
}
