//! Power cuts under SQLite: that the checks pass when commits are synced, and that they can fail.
#![cfg(target_os = "linux")]

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use oncebox_testkit::faultfs::FaultFs;
use rusqlite::Connection;
use tempfile::TempDir;

/// Rows told of before a kill. Enough for a few checkpoints, at the size set below.
const ROWS: i64 = 40;

#[test]
fn a_full_sync_keeps_every_row_told_of() {
    let disk = Disk::new();
    for round in 1..=5 {
        disk.write_and_kill("full", round * ROWS);
        disk.faults.cut_power();
        assert!(disk.last_row() >= round * ROWS, "round {round}");
    }
}

#[test]
fn a_full_sync_keeps_them_when_blocks_are_torn() {
    let disk = Disk::new();
    for round in 1..=5 {
        disk.write_and_kill("full", round * ROWS);
        disk.faults.cut_power_torn(round.unsigned_abs());
        assert!(disk.last_row() >= round * ROWS, "round {round}");
    }
}

/// Kills without a cut in between: the shadow follows over several processes.
#[test]
fn a_cut_after_several_restarts_loses_nothing_either() {
    let disk = Disk::new();
    for round in 1..=5 {
        disk.write_and_kill("full", round * ROWS);
    }
    disk.faults.cut_power();
    assert!(disk.last_row() >= 5 * ROWS);
}

/// What the harness is for: each of these keeps all rows over a kill, and loses some by a cut.
#[test]
fn without_the_sync_the_check_fails() {
    for (manner, lying) in [("full", true), ("off", false), ("normal long", false)] {
        let disk = Disk::new();
        disk.faults.drop_syncs(lying);
        disk.write_and_kill(manner, ROWS);
        disk.faults.cut_power();
        assert!(disk.last_row() < ROWS, "{manner}, lying: {lying}");
    }
}

/// The failed bytes stay in the page cache and never reach the disk. A process that starts again
/// and builds on them loses what it tells of from then on, unless it first writes them anew.
#[test]
fn after_a_failed_sync_only_a_checkpoint_makes_a_restart_safe() {
    for (start, safe) in [("full long", false), ("full settled", true)] {
        let disk = Disk::new();
        disk.write_and_kill("full long", 10);
        disk.faults.only("-wal");
        disk.faults.fail_next_sync();
        let mut failing = disk.start("full long");
        assert_eq!(failing.next(), None, "the commit must fail");
        assert_eq!(disk.faults.failed_syncs(), 1);

        let told = disk.write_and_kill(start, 20);
        disk.faults.cut_power();
        assert_eq!(disk.last_row() >= told, safe, "{start}");
    }
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

    fn start(&self, manner: &str) -> Writer {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "in_a_child_rows_are_written", "--nocapture"])
            .env(CHILD, self.folder.path().join("test.db"))
            .env(MANNER, manner)
            .envs(self.faults.envs())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        Writer { child, told }
    }

    /// Kills the writer in full flight, once it has told of row `least`; gives the last it told.
    fn write_and_kill(&self, manner: &str, least: i64) -> i64 {
        let mut writer = self.start(manner);
        while writer.next().expect("the writer goes on until killed") < least {}
        writer.child.kill().unwrap();
        // What was told before the kill is in the pipe.
        std::iter::from_fn(|| writer.next()).last().unwrap_or(least)
    }

    /// Also that the file is sound and without a gap, whatever the fault.
    fn last_row(&self) -> i64 {
        let copy = self.faults.copy();
        let database = Connection::open(copy.path().join("test.db")).unwrap();
        let sound: String =
            database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        let count = "SELECT count(*), coalesce(max(id), 0) FROM kept";
        let Ok((rows, last)) = database.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?)))
        else {
            return 0; // not even the table is left
        };
        let (rows, last): (i64, i64) = (rows, last);
        assert_eq!(rows, last, "a gap");
        last
    }
}

struct Writer {
    child: Child,
    told: BufReader<ChildStdout>,
}

impl Writer {
    /// The next row the writer tells of, or none when it has ended.
    fn next(&mut self) -> Option<i64> {
        let mut line = String::new();
        while self.told.read_line(&mut line).unwrap() > 0 {
            // A line that the kill cut short was not told.
            if let Some(row) = line.strip_prefix("> ").and_then(|row| row.strip_suffix('\n')) {
                return Some(row.parse().unwrap());
            }
            line.clear();
        }
        None
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

const CHILD: &str = "ONCEBOX_TESTKIT_CHILD";
const MANNER: &str = "ONCEBOX_TESTKIT_MANNER";

/// Not a test of its own: commits row after row and tells of each, until it fails or is killed.
#[test]
fn in_a_child_rows_are_written() {
    let Some(path) = env::var_os(CHILD) else {
        return;
    };
    println!();
    let manner = env::var(MANNER).unwrap();
    let _ = write_rows(Path::new(&path), &manner.split(' ').collect::<Vec<_>>());
    // As a server has to: away, without another sync.
    std::process::abort();
}

/// In a manner such as `full settled`: the level of `synchronous`, then `long` for a log without
/// checkpoints, or `settled` for one that starts with a checkpoint.
fn write_rows(path: &Path, manner: &[&str]) -> rusqlite::Result<()> {
    // Never closed, since a close would checkpoint.
    let database = std::mem::ManuallyDrop::new(Connection::open(path)?);
    let mode = database
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
    assert_eq!(mode, "wal");
    database.pragma_update(None, "synchronous", manner[0])?;
    let pages = if manner.len() > 1 { 0 } else { 25 };
    database.pragma_update(None, "wal_autocheckpoint", pages)?;
    if manner.contains(&"settled") {
        database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    database
        .execute_batch("CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, body BLOB)")?;
    loop {
        database.execute("INSERT INTO kept (body) VALUES (randomblob(2000))", [])?;
        println!("> {}", database.last_insert_rowid());
    }
}
