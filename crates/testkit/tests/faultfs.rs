//! The file faults, seen by a process that does what it is told, one line at a time.
#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use oncebox_testkit::faultfs::FaultFs;
use tempfile::TempDir;

#[test]
fn synced_bytes_stay_and_unsynced_ones_vanish() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    for line in ["append log one", "sync log", "append log two", "append other text"] {
        writer.ok(line);
    }
    writer.kill();
    assert_eq!(disk.read("log"), "onetwo", "a kill alone loses nothing");

    disk.faults.cut_power();
    assert_eq!(disk.read("log"), "one");
    assert_eq!(disk.read("other"), "", "created, but never synced");
    assert_eq!(disk.faults.syncs(), 1);
}

#[test]
fn a_lying_sync_keeps_nothing() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    writer.ok("append log one");
    disk.faults.drop_syncs(true);
    writer.ok("sync log");
    writer.kill();
    disk.faults.cut_power();
    assert_eq!(disk.read("log"), "");

    let mut writer = disk.writer();
    disk.faults.drop_syncs(false);
    for line in ["append log two", "sync log"] {
        writer.ok(line);
    }
    writer.kill();
    disk.faults.cut_power();
    assert_eq!(disk.read("log"), "two", "an honest sync keeps its bytes");
}

/// A kernel keeps the dead process's pages, and the next sync of the file writes them.
#[test]
fn a_sync_after_a_restart_covers_what_the_dead_process_wrote() {
    let disk = Disk::new();
    let mut first = disk.writer();
    first.ok("append log one");
    first.kill();
    let mut second = disk.writer();
    for line in ["append log two", "sync log"] {
        second.ok(line);
    }
    second.kill();
    disk.faults.cut_power();
    assert_eq!(disk.read("log"), "onetwo");
}

#[test]
fn what_was_there_before_counts_as_synced() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/old"), "old").unwrap();
    fs::write(folder.path().join("x.db-shm"), "index").unwrap();
    let disk = Disk { faults: FaultFs::new(folder.path()), folder };

    let mut writer = disk.writer();
    writer.ok("append sub/old er");
    writer.kill();
    disk.faults.cut_power();
    assert_eq!(disk.read("sub/old"), "old");
    assert!(!disk.folder.path().join("x.db-shm").exists());
}

#[test]
fn truncations_and_holes_reach_the_disk_with_a_sync() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    for line in ["append log abcdef", "sync log", "truncate log 2"] {
        writer.ok(line);
    }
    writer.kill();
    disk.faults.cut_power();
    assert_eq!(disk.read("log"), "abcdef", "an unsynced truncation is undone");

    let mut writer = disk.writer();
    for line in ["truncate log 2", "truncate log 5", "sync log", "put log 9000 far", "sync log"] {
        writer.ok(line);
    }
    writer.kill();
    disk.faults.cut_power();
    let bytes = disk.read("log");
    assert_eq!(bytes.len(), 9003);
    assert_eq!(&bytes[..5], "ab\0\0\0");
    assert!(bytes.ends_with("\0far"));
}

#[test]
fn a_file_written_anew_is_empty_until_synced() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    for line in ["append log abcdef", "sync log", "create log", "append log x"] {
        writer.ok(line);
    }
    writer.ok("sync log");
    writer.kill();
    disk.faults.cut_power();
    assert_eq!(disk.read("log"), "x");
}

#[test]
fn names_change_at_once_and_contents_with_a_sync() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    for line in [
        "append new one",
        "sync new",
        "append new two",
        "append target old",
        "sync target",
        "rename new target",
        "append gone x",
        "sync gone",
        "remove gone",
    ] {
        writer.ok(line);
    }
    writer.kill();
    disk.faults.cut_power();
    assert_eq!(disk.names(), ["target"]);
    assert_eq!(disk.read("target"), "one");
}

#[test]
fn a_failed_sync_is_an_error_and_a_retry_does_not_help() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    writer.ok("append log one");
    disk.faults.fail_next_sync();
    assert_eq!(writer.tell("sync log"), "EIO");
    assert_eq!((disk.faults.failed_syncs(), disk.faults.syncs_after_failure()), (1, 0));

    writer.ok("sync log");
    assert_eq!(disk.faults.syncs_after_failure(), 1, "a retry is noticed");
    writer.kill();
    assert_eq!(disk.read("log"), "one", "still in the page cache");
    disk.faults.cut_power();
    assert_eq!(disk.read("log"), "\0\0\0", "as on Linux, the retry wrote no more than a length");
}

#[test]
fn sync_faults_can_be_for_some_files_only() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    writer.ok("append x.db one");
    writer.ok("append x.db-wal two");
    disk.faults.only("-wal");
    disk.faults.fail_syncs(true);
    writer.ok("sync x.db");
    assert_eq!(writer.tell("sync x.db-wal"), "EIO");
    disk.faults.fail_syncs(false);
    writer.ok("sync x.db-wal");
    assert_eq!(disk.faults.syncs(), 3);
}

#[test]
fn a_full_disk_takes_what_fits_and_recovers() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    writer.ok("append log one");
    disk.faults.disk_full(true);
    assert_eq!(writer.tell("append log two"), "ENOSPC");
    assert_eq!(writer.tell("put log 0 x"), "ENOSPC");
    assert_eq!(writer.tell("truncate log 100"), "ENOSPC");
    assert_eq!(disk.faults.refused_writes(), 3);
    writer.ok("sync log");

    disk.faults.disk_full_after(2);
    assert_eq!(writer.tell("append log two"), "ENOSPC", "after a short write of two bytes");
    assert_eq!(disk.read("log"), "onetw");

    disk.faults.disk_full(false);
    writer.ok("append log three");
    assert_eq!(disk.read("log"), "onetwthree");
}

#[test]
fn a_stalled_sync_returns_when_the_stall_ends() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    writer.ok("append log one");
    disk.faults.stall_syncs(true);
    writer.send("sync log");
    disk.faults.wait_for(FaultFs::stalls, 1);
    // Only syncs stall: the file can still be written and read elsewhere.
    let mut other = disk.writer();
    other.ok("append log two");
    disk.faults.stall_syncs(false);
    assert_eq!(writer.answer(), "ok");
}

#[test]
fn a_writer_killed_in_a_stall_harms_nobody() {
    let disk = Disk::new();
    for round in 0..20 {
        let mut writer = disk.writer();
        writer.ok(&format!("append log {round},"));
        disk.faults.stall_syncs(true);
        writer.send("sync log");
        disk.faults.wait_for(FaultFs::stalls, round + 1);
        writer.kill();
        disk.faults.stall_syncs(false);
    }
    let mut writer = disk.writer();
    writer.ok("sync log");
    writer.kill();
    let before = disk.read("log");
    disk.faults.cut_power();
    assert_eq!(disk.read("log"), before);
}

#[test]
fn files_elsewhere_are_left_alone() {
    let (disk, elsewhere) = (Disk::new(), tempfile::tempdir().unwrap());
    disk.faults.fail_syncs(true);
    disk.faults.disk_full(true);
    let path = elsewhere.path().join("file");
    let mut writer = disk.writer();
    writer.ok(&format!("append {} text", path.display()));
    writer.ok(&format!("sync {}", path.display()));
    assert_eq!(disk.faults.syncs(), 0);
}

/// Several blocks, partly synced: a torn cut leaves each block old or new, never a third thing.
#[test]
fn a_torn_cut_keeps_some_of_the_unsynced_blocks() {
    let disk = Disk::new();
    let mut writer = disk.writer();
    for block in 0..64 {
        writer.ok(&format!("put log {} s", block * 4096));
    }
    writer.ok("sync log");
    for block in 0..64 {
        writer.ok(&format!("put log {} w", block * 4096));
    }
    writer.kill();
    disk.faults.cut_power_torn(7);
    let text = disk.read("log");
    let kept: String = text.chars().step_by(4096).collect();
    assert!(kept.contains('s') && kept.contains('w'), "{kept}");
    assert_eq!(kept.len(), 64);
}

struct Disk {
    faults: FaultFs,
    folder: TempDir,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { faults: FaultFs::new(folder.path()), folder }
    }

    fn writer(&self) -> Writer {
        Writer::start(self.folder.path(), self.faults.envs())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A child process under the layer.
struct Writer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

const CHILD: &str = "ONCEBOX_TESTKIT_CHILD";

impl Writer {
    fn start(folder: &Path, envs: Vec<(String, String)>) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "in_a_child_orders_are_followed", "--nocapture"])
            .env(CHILD, folder)
            .envs(envs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, answers }
    }

    #[track_caller]
    fn ok(&mut self, order: &str) {
        assert_eq!(self.tell(order), "ok", "{order}");
    }

    fn tell(&mut self, order: &str) -> String {
        self.send(order);
        self.answer()
    }

    fn send(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        while self.answers.read_line(&mut line).unwrap() > 0 {
            if let Some((_, answer)) = line.split_once("> ") {
                return answer.trim().to_owned();
            }
            line.clear();
        }
        panic!("the writer is gone");
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not a test of its own: what the writer runs until it is killed.
#[test]
fn in_a_child_orders_are_followed() {
    let Some(folder) = env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let mut open = HashMap::new();
    for order in io::stdin().lock().lines() {
        let result = follow(&folder, &mut open, &order.unwrap());
        println!("> {}", result.map_or_else(|error| name_of(&error), |()| "ok".to_owned()));
    }
}

fn follow(folder: &Path, open: &mut HashMap<String, File>, order: &str) -> io::Result<()> {
    let words: Vec<&str> = order.split(' ').collect();
    let path = folder.join(words[1]);
    if words[0] == "create" {
        open.insert(words[1].to_owned(), File::create(&path)?);
        return Ok(());
    }
    if let "rename" | "remove" = words[0] {
        open.remove(words[1]);
        return match words.get(2) {
            Some(to) => fs::rename(path, folder.join(to)),
            None => fs::remove_file(path),
        };
    }
    if !open.contains_key(words[1]) {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        open.insert(words[1].to_owned(), file);
    }
    let file = &open[words[1]];
    match words[0] {
        "append" => {
            let mut rest = words[2].as_bytes();
            let mut end = file.metadata()?.len();
            while !rest.is_empty() {
                let written = file.write_at(rest, end)?;
                rest = &rest[written..];
                end += written as u64;
            }
            Ok(())
        }
        "put" => file.write_all_at(words[3].as_bytes(), words[2].parse().unwrap()),
        "truncate" => file.set_len(words[2].parse().unwrap()),
        "sync" => file.sync_data(),
        other => panic!("what is {other}?"),
    }
}

fn name_of(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(5) => "EIO".to_owned(),
        Some(28) => "ENOSPC".to_owned(),
        _ => error.to_string(),
    }
}
