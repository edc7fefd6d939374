//! A copy of the file, made while it is in use.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::connection::{self, failure};
use crate::store::{BackupProgress, StoreError};

/// Pages copied before the next word about it: 16 MiB.
const STEP_PAGES: std::ffi::c_int = 2048;

/// How long a step that met a lock waits.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// Copies the file to `to`: one snapshot, checked, synced, and there as a whole or not at all.
/// Returns its size. Those who write to the file go on meanwhile.
pub(super) fn backup(
    path: &Path,
    to: &Path,
    overwrite: bool,
    tell: &dyn Fn(BackupProgress),
) -> Result<u64, StoreError> {
    connection::check_library()?;
    let source = connection::open(path)?;
    check_target(path, to, overwrite)?;
    let part = beside(to, &format!(".partial-{}", std::process::id()));
    let placed = copy(&source, &part, tell).and_then(|bytes| {
        place(&part, to, overwrite).map_err(|error| cannot(to, &error))?;
        Ok(bytes)
    });
    if placed.is_err() {
        let _ = fs::remove_file(&part);
    }
    placed
}

/// Refuses a place that is taken, and one where SQLite would find the log of another file.
fn check_target(path: &Path, to: &Path, overwrite: bool) -> Result<(), StoreError> {
    let is_store =
        to.canonicalize().is_ok_and(|to| path.canonicalize().is_ok_and(|path| path == to));
    if is_store {
        return Err(StoreError::unfit(
            format!("{} is the store itself", to.display()),
            "Name another file.",
        ));
    }
    if !overwrite && to.symlink_metadata().is_ok() {
        return Err(StoreError::unfit(
            format!("{} exists", to.display()),
            "Name another file, or give --force to replace it.",
        ));
    }
    for end in ["-wal", "-shm", "-journal"] {
        let log = beside(to, end);
        if log.symlink_metadata().is_ok() {
            return Err(StoreError::unfit(
                format!(
                    "{} exists: a database at that place is in use or was not closed",
                    log.display()
                ),
                "Name another file.",
            ));
        }
    }
    Ok(())
}

/// Copies one snapshot of the source and checks the copy.
fn copy(
    source: &Connection,
    part: &Path,
    tell: &dyn Fn(BackupProgress),
) -> Result<u64, StoreError> {
    create_private(part).map_err(|error| cannot(part, &error))?;
    let mut copy = Connection::open(part).map_err(failure)?;
    // With a transaction open the source shows one moment, whatever is committed meanwhile: the
    // copy never has to begin again.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map_err(failure)?;
    {
        let backup = Backup::new(source, &mut copy).map_err(failure)?;
        loop {
            match backup.step(STEP_PAGES).map_err(failure)? {
                StepResult::Done => break,
                StepResult::More => tell(progress(&backup)),
                // Another process has locked the file for a moment.
                _ => std::thread::sleep(LOCKED_PAUSE),
            }
        }
        tell(progress(&backup));
    }
    source.execute_batch("COMMIT").map_err(failure)?;
    // A single file, without a log beside it.
    copy.pragma_update(None, "journal_mode", "delete").map_err(failure)?;
    tell(BackupProgress::Checking);
    let damage: String =
        copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failure)?;
    if damage != "ok" {
        return Err(StoreError::Unavailable(format!("the copy is damaged: {damage}")));
    }
    copy.close().map_err(|(_, error)| failure(error))?;
    let sync = || {
        let file = File::open(part)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    sync().map_err(|error: io::Error| cannot(part, &error))
}

fn progress(backup: &Backup<'_, '_>) -> BackupProgress {
    let progress = backup.progress();
    let count = |pages: std::ffi::c_int| u64::from(pages.unsigned_abs());
    let all = count(progress.pagecount);
    BackupProgress::Copying { done: all.saturating_sub(count(progress.remaining)), all }
}

/// Puts the copy where it belongs. Without leave to overwrite, a file that has come there meanwhile
/// stays.
fn place(part: &Path, to: &Path, overwrite: bool) -> io::Result<()> {
    if overwrite {
        fs::rename(part, to)?;
    } else {
        fs::hard_link(part, to)?;
        fs::remove_file(part)?;
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// A new file that only its owner may read: it holds what the store does.
fn create_private(path: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn cannot(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot write {}: {error}", path.display()))
}
