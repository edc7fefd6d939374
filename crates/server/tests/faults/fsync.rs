//! A sync that fails. The kernel forgets what it could not write, and a second sync reports a
//! success that is none; so there is no second sync, and the next process starts from the disk.

use std::sync::Arc;

use oncebox_testkit::faultfs::FaultFs;
use oncebox_testkit::process::ServerProcess;

use crate::bed::{Bed, assert_says, assert_unavailable, post, try_post};
use crate::chance::Chance;
use crate::checker::{Broken, assert_kept, check};
use crate::load::{Ledger, Load};

struct Disk {
    bed: Bed,
    faults: FaultFs,
    ledger: Arc<Ledger>,
    chance: Chance,
}

impl Disk {
    fn new() -> Self {
        let bed = Bed::sqlite();
        let faults = FaultFs::new(bed.home.path());
        Self { bed, faults, ledger: Ledger::new(), chance: Chance::new() }
    }

    fn serve(&self) -> ServerProcess {
        self.bed.serve_with(&self.faults.envs())
    }

    fn load(&mut self, server: &ServerProcess, acks: usize) -> Load {
        let load = Load::on(&self.ledger, server.addresses().public, &mut self.chance);
        self.ledger.wait_for_acks(acks);
        load
    }

    /// Posts everything open again, kills the server and cuts the power: what was answered by
    /// then has to be on the disk, not only in the page cache.
    fn retry_and_cut_power(&mut self, mut server: ServerProcess) {
        for id in self.ledger.open() {
            self.ledger.note(&id, &post(server.addresses().public, &id));
        }
        self.load(&server, 20).stop();
        server.kill();
        self.faults.cut_power();
        assert_kept(&self.check(), &self.ledger);
    }

    fn check(&self) -> Vec<Broken> {
        let copy = self.faults.copy();
        check(&self.ledger, &format!("sqlite://{}", copy.path().join("oncebox.db").display()))
    }
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_and_a_restart_recovers() {
    let mut disk = Disk::new();
    let mut server = disk.serve();
    let load = disk.load(&server, 50);
    disk.faults.fail_next_sync();
    assert_eq!(server.wait().code(), Some(69), "{}", server.log());
    load.end();
    assert_eq!((disk.faults.failed_syncs(), disk.faults.syncs_after_failure()), (1, 0));
    assert!(disk.ledger.answers().unavailable > 0, "{:?}", disk.ledger.answers());
    assert_says(&server, "start it again");

    let server = disk.serve();
    disk.retry_and_cut_power(server);
}

/// One sender and no load: it is told 503, not left without an answer.
#[test]
fn the_sender_whose_sync_fails_is_told_to_come_back() {
    let mut disk = Disk::new();
    let mut server = disk.serve();
    disk.load(&server, 10).stop();
    disk.faults.fail_syncs(true);
    assert_unavailable(&post(server.addresses().public, "evt_failing"));
    // Whoever comes before the process is gone hears the same, or nothing.
    if let Ok(answer) = try_post(server.addresses().public, "evt_after") {
        assert_unavailable(&answer);
    }
    assert_eq!(server.wait().code(), Some(69), "{}", server.log());
    assert_eq!((disk.faults.failed_syncs(), disk.faults.syncs_after_failure()), (1, 0));
    disk.faults.fail_syncs(false);
    let server = disk.serve();
    assert!(matches!(post(server.addresses().public, "evt_failing").status, 200 | 202));
}

/// The sync that ends a checkpoint fails: the log is still there, and is copied anew.
#[test]
fn a_checkpoint_whose_sync_fails_is_made_again_from_the_log() {
    let mut disk = Disk::new();
    let mut server = disk.serve();
    disk.load(&server, 50).stop();
    disk.faults.only(".db");
    disk.faults.fail_syncs(true);
    server.terminate();
    server.wait();
    assert_eq!((disk.faults.failed_syncs(), disk.faults.syncs_after_failure()), (1, 0));
    disk.faults.fail_syncs(false);

    let server = disk.serve();
    disk.retry_and_cut_power(server);
}

#[test]
fn a_server_whose_disk_cannot_sync_does_not_start() {
    let disk = Disk::new();
    disk.faults.fail_syncs(true);
    let mut server = disk.bed.start_with(&disk.faults.envs());
    assert_eq!(server.wait().code(), Some(69), "{}", server.log());
}
