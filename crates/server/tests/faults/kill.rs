//! SIGKILL at random moments under load, over and over, on one store that grows.

use oncebox::clock::{Clock as _, SystemClock};

use crate::bed::Bed;
use crate::chance::{Chance, rounds};
use crate::checker::{assert_kept, check, check_rows, check_since, rows_printed};
use crate::load::{Ledger, Load};

/// Looked at again in every cycle, of the events of all cycles before.
const OLDER: usize = 25;

#[test]
fn a_killed_server_on_sqlite_loses_nothing_it_acknowledged() {
    let bed = Bed::sqlite();
    let ledger = kill_cycles(&bed);
    // Once through the command as well: what an operator sees is what the library sees.
    let run = bed.oncebox(&["receipts", "list", "--all", "--json"]);
    assert_kept(&check_rows(&ledger, &rows_printed(&run), &ledger.acknowledged(0)), &ledger);
}

#[test]
fn a_killed_server_on_postgres_loses_nothing_it_acknowledged() {
    kill_cycles(&Bed::postgres());
}

fn kill_cycles(bed: &Bed) -> std::sync::Arc<Ledger> {
    let mut chance = Chance::new();
    let ledger = Ledger::new();
    let mut server = bed.serve();
    for cycle in 0..rounds(10, 200) {
        let begin = (SystemClock.now(), ledger.acknowledged(0).len());
        let load = Load::on(&ledger, server.addresses().public, &mut chance);
        // SQLite's log is first copied back after some 1250 events: now and then around then.
        let acks = if cycle % 10 == 9 { 1100..1500 } else { 1..200 };
        ledger.wait_for_acks(chance.between(acks));
        chance.spin();
        server.kill();
        load.end();

        // Some die again while they recover.
        while chance.once_in(4) {
            let mut recovering = bed.start_with(&[]);
            (0..8).for_each(|_| chance.spin());
            recovering.kill();
        }
        server = bed.serve();
        let broken = check_since(&ledger, &bed.url, begin, &mut chance, OLDER);
        assert!(broken.is_empty(), "cycle {cycle}: {broken:?}, {:?}", ledger.answers());
    }
    assert_kept(&check(&ledger, &bed.url), &ledger);
    println!("{:?}", ledger.answers());
    ledger
}
