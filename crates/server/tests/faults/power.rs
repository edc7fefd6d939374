//! Power cuts: of what was written, only what was synced is left.

use std::ops::Range;
use std::sync::Arc;

use oncebox_testkit::faultfs::FaultFs;

use crate::bed::Bed;
use crate::chance::{Chance, rounds};
use crate::checker::{Broken, assert_kept, check};
use crate::load::{Ledger, Load};

#[test]
fn a_power_cut_loses_nothing_acknowledged() {
    cut_power(FaultFs::cut_power);
}

#[test]
fn a_power_cut_that_tears_writes_loses_nothing_acknowledged() {
    let mut tears = Chance::new();
    cut_power(move |faults| faults.cut_power_torn(tears.next()));
}

fn cut_power(mut cut: impl FnMut(&FaultFs)) {
    let mut chance = Chance::new();
    let disk = Disk::new();
    let ledger = Ledger::new();
    for round in 0..rounds(3, 20) {
        // The log is first copied back after some 1250 events: now and then around then.
        disk.load_and_kill(&ledger, &mut chance, if round % 3 == 1 { 1100..1500 } else { 1..200 });
        // Half of the time the server comes up once before the power goes, and has to make
        // durable what it finds before it says anything about it.
        if chance.once_in(2) {
            disk.load_and_kill(&ledger, &mut chance, 1..200);
        }
        cut(&disk.faults);
        let broken = disk.check(&ledger);
        assert!(broken.is_empty(), "round {round}: {broken:?}, {:?}", ledger.answers());
    }
    // Nor is the store a ruin: it serves and knows everything.
    let mut server = disk.bed.serve_with(&disk.faults.envs());
    let load = Load::on(&ledger, server.addresses().public, &mut chance);
    ledger.wait_for_acks(50);
    load.stop();
    server.terminate();
    assert!(server.wait().success());
    assert_kept(&disk.check(&ledger), &ledger);
}

/// What the tests above are worth: the same check, on a disk that lies.
#[test]
fn with_syncs_dropped_the_check_finds_losses() {
    let mut chance = Chance::new();
    let disk = Disk::new();
    let ledger = Ledger::new();
    disk.faults.drop_syncs(true);
    disk.load_and_kill(&ledger, &mut chance, 1..200);
    disk.faults.cut_power();

    let broken = disk.check(&ledger);
    let lost = broken.iter().filter(|broken| matches!(broken, Broken::Lost(_))).count();
    assert!(lost > 0, "nothing lost of {:?}; found {broken:?}", ledger.answers());
}

struct Disk {
    bed: Bed,
    faults: FaultFs,
}

impl Disk {
    /// With the schema on it, so that there is something to look into after the worst.
    fn new() -> Self {
        let bed = Bed::sqlite();
        let run = bed.oncebox(&["migrate", "up"]);
        assert_eq!(run.code, Some(0), "{run}");
        let faults = FaultFs::new(bed.home.path());
        Self { bed, faults }
    }

    fn load_and_kill(&self, ledger: &Arc<Ledger>, chance: &mut Chance, acks: Range<usize>) {
        let mut server = self.bed.serve_with(&self.faults.envs());
        let load = Load::on(ledger, server.addresses().public, chance);
        ledger.wait_for_acks(chance.between(acks));
        chance.spin();
        server.kill();
        load.end();
    }

    /// On a copy, since a look changes the files.
    fn check(&self, ledger: &Ledger) -> Vec<Broken> {
        let copy = self.faults.copy();
        check(ledger, &format!("sqlite://{}", copy.path().join("oncebox.db").display()))
    }
}
