//! Opening the file so that a commit means what the promises say.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use tracing::info;

use crate::store::StoreError;

/// The first release in which a checkpoint and a restart of the write-ahead log cannot race and
/// lose a commit.
const FIXED_SINCE: i32 = 3_051_003;

/// Files up to 64 MiB are checked whole when they are opened to serve.
const PAGES_CHECKED_AT_START: i64 = 8192;

/// How long another connection's lock is waited for.
const BUSY_WAIT: Duration = Duration::from_secs(2);

/// Refuses a SQLite that may lose commits.
pub(super) fn check_library() -> Result<(), StoreError> {
    check_version(rusqlite::version_number())
}

fn check_version(number: i32) -> Result<(), StoreError> {
    if number >= FIXED_SINCE {
        return Ok(());
    }
    Err(StoreError::unfit(
        format!("SQLite {number} may lose commits when its write-ahead log is reset"),
        "Build with the bundled SQLite, 3.51.3 or later.",
    ))
}

/// Makes sure that there is a file, empty if it is new.
pub(super) fn create_file(path: &Path) -> Result<(), StoreError> {
    // A folder that is not there is a mistake more often than a wish: an empty store in a folder
    // named by mistake would take every event for new.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(StoreError::unfit(
            format!("there is no folder {} for the store", folder.display()),
            "Create it, or correct `[store] url`.",
        ));
    }
    create_private(path)?;
    check_links(path)
}

/// Opens the file to write, creating it if it is not there.
pub(super) fn create(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    create_file(path)?;
    let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
    connection.pragma_update(None, "page_size", 8192).map_err(failure)?;
    set_up(&connection).map_err(|error| named(path, error))?;
    Ok(connection)
}

/// Makes the file readable by its owner only, if it is not there yet. SQLite gives its log the
/// same rights.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = File::options();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let created = match options.open(path) {
        // What is there is not opened: closing it again would take away the locks that SQLite has
        // on it in this process.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.exists() => return Ok(()),
        // A link that leads to where the file is to be.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            options.create_new(false).create(true).open(path)
        }
        created => created,
    };
    match created {
        Ok(_) => {
            info!(path = %path.display(), "created a new store: it remembers no event yet");
            Ok(())
        }
        Err(error) => {
            Err(StoreError::Unavailable(format!("cannot create {}: {error}", path.display())))
        }
    }
}

/// Opens the file to write; it must be there.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if !path.exists() {
        return Err(StoreError::unfit(
            format!("there is no store at {}", path.display()),
            "Check `store.url`; `oncebox serve` and `oncebox migrate up` create it.",
        ));
    }
    check_links(path)?;
    let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
    set_up(&connection).map_err(|error| named(path, error))?;
    Ok(connection)
}

/// A file that is something else than a store is named, and left as it is.
fn named(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Fatal(reason) => StoreError::unfit(
            format!("{} cannot be opened as a store: {reason}", path.display()),
            "Check `store.url`; the file was not changed.",
        ),
        other => other,
    }
}

/// Opens the file to read only.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failure)?;
    keep_plans(&connection, 64)?;
    // Reading must not checkpoint on its way out either.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failure)?;
    Ok(connection)
}

/// Keeps statements prepared. Without this, SQLite plans a statement anew whenever it is used again
/// if its plan might profit from a parameter's value, such as that of a LIMIT: that takes a hundred
/// times as long as running it.
fn keep_plans(connection: &Connection, statements: usize) -> Result<(), StoreError> {
    connection.set_prepared_statement_cache_capacity(statements);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failure)?;
    Ok(())
}

fn set_up(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY_WAIT).map_err(failure)?;
    // A checkpoint on close would sync a file whose last sync may have failed.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failure)?;
    let mode = keep_a_log(connection)?;
    connection.pragma_update(None, "synchronous", "full").map_err(failure)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(failure)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failure)?;
    connection.pragma_update(None, "cache_size", -48 * 1024).map_err(failure)?;
    connection.pragma_update(None, "temp_store", "memory").map_err(failure)?;
    connection.pragma_update(None, "journal_size_limit", 128 << 20).map_err(failure)?;
    keep_plans(connection, 128)?;
    let synchronous: i64 =
        connection.pragma_query_value(None, "synchronous", |row| row.get(0)).map_err(failure)?;
    if mode != "wal" || synchronous != 2 {
        return Err(StoreError::unfit(
            format!("SQLite stays in journal mode {mode} with synchronous = {synchronous}"),
            "The file must be on a local disk that supports a write-ahead log.",
        ));
    }
    Ok(())
}

/// Turns the write-ahead log on and returns the mode that is in force. Of several that do this to
/// a new file SQLite tells all but one that it is busy, without waiting, since none could give
/// way; a moment later the log is there.
fn keep_a_log(connection: &Connection) -> Result<String, StoreError> {
    let patience = Instant::now() + BUSY_WAIT;
    loop {
        let mode =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
        match mode {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < patience =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            mode => return mode.map_err(failure),
        }
    }
}

/// Copies the write-ahead log back and syncs the file.
///
/// After a kill or a failed sync, commits may be visible that never reached the disk. Written
/// afresh into the file and synced, what is visible is durable before anybody is told about it.
pub(super) fn settle(connection: &Connection) -> Result<(), StoreError> {
    let busy: bool = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(failure)?;
    match busy {
        false => Ok(()),
        true => Err(StoreError::Unavailable(
            "another process holds the store's log open; its commits cannot be made sure of".into(),
        )),
    }
}

/// Refuses a file whose pages do not hang together. A large file is not read through at every
/// start: a damaged page is then found when it is used, and stops the store just the same.
pub(super) fn check_pages(connection: &Connection) -> Result<(), StoreError> {
    let pages: i64 =
        connection.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(failure)?;
    if pages > PAGES_CHECKED_AT_START {
        return Ok(());
    }
    let damage: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failure)?;
    if damage != "ok" {
        return Err(StoreError::Fatal(format!("the database file is damaged: {damage}")));
    }
    Ok(())
}

/// The lock that lets one process serve a file. Operators may open the same file beside it.
#[derive(Debug)]
pub(super) struct ServeLock {
    _file: File,
}

impl ServeLock {
    /// Takes the lock of a file that is there. It lies beside the file itself, whatever path led to
    /// it: SQLite keeps its log there, too.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let unavailable = |what: &Path, error: std::io::Error| {
            StoreError::Unavailable(format!("cannot lock {}: {error}", what.display()))
        };
        let path = path.canonicalize().map_err(|error| unavailable(path, error))?;
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let name = PathBuf::from(name);
        let file = File::options().create(true).append(true).open(&name);
        let file = file.map_err(|error| unavailable(&name, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::unfit(
                format!("another oncebox serves {}", path.display()),
                "Stop it first, or use PostgreSQL to run several.",
            )),
            Err(TryLockError::Error(error)) => Err(unavailable(&name, error)),
        }
    }
}

/// Refuses a file that has several names. SQLite names its write-ahead log after the name by which
/// a file is opened: two processes that use two names would each have a log of their own.
#[cfg(unix)]
fn check_links(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;
    let links = path.metadata().map_or(1, |metadata| metadata.nlink());
    if links <= 1 {
        return Ok(());
    }
    Err(StoreError::unfit(
        format!("{} has {links} names (hard links)", path.display()),
        "Remove the others: SQLite would keep a log for each name and damage the file. To copy a \
         store use `oncebox backup`.",
    ))
}

#[cfg(not(unix))]
fn check_links(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// Does work in one transaction that holds the write lock from its beginning. What the work
/// returns is synced; where it fails, nothing happened.
pub(super) fn in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    try_in_transaction(connection, |transaction| work(transaction).map_err(failure))
}

/// The same for work that can fail for reasons of its own.
pub(super) fn try_in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    let done = work(&transaction)?;
    transaction.commit().map_err(failure)?;
    Ok(done)
}

/// Runs a statement that returns nothing. Says how many rows it changed.
pub(super) fn run(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

/// What an error of SQLite means for us.
#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
pub(super) fn failure(error: rusqlite::Error) -> StoreError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Unavailable(format!("the disk is full: {text}")),
        // After a failed write or sync the kernel may have dropped pages it says are clean.
        // Trying again could report a success that is none.
        Some(ErrorCode::SystemIoFailure) => StoreError::Fatal(text),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Fatal(text),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch) => {
            StoreError::Data(text)
        }
        _ => StoreError::Unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_may_lose_commits_are_refused() {
        assert!(check_version(3_046_000).is_err());
        assert!(check_version(3_051_002).is_err());
        assert!(check_version(3_051_003).is_ok());
        assert!(check_library().is_ok());
    }
}
