//! The one writer: a thread that owns the connection, and another that copies the log back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;
use tracing::{error, warn};

use super::SqliteOptions;
use super::connection::{self, ServeLock, failure};
use crate::store::{Health, StoreError};

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Hands work to the writer thread.
#[derive(Clone)]
pub(super) struct Writer {
    jobs: Arc<Mutex<Option<Sender<Job>>>>,
    log: Arc<Log>,
}

/// What the threads know about the write-ahead log.
struct Log {
    /// Its size in bytes after the last commit.
    bytes: AtomicU64,
    /// Set once a sync or a page has failed; nothing is written after that.
    failed: OnceLock<String>,
    /// The background copy came to its end; the writer may now copy the short rest.
    finish: AtomicBool,
    wake: SyncSender<()>,
    checkpoint_bytes: u64,
    alert_bytes: u64,
    refuse_bytes: u64,
}

impl Writer {
    pub(super) fn start(
        mut connection: Connection,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let (wake, woken) = mpsc::sync_channel(1);
        let log = Arc::new(Log {
            bytes: AtomicU64::new(0),
            failed: OnceLock::new(),
            finish: AtomicBool::new(false),
            wake,
            checkpoint_bytes: options.wal_checkpoint_bytes,
            alert_bytes: options.wal_alert_bytes,
            refuse_bytes: options.wal_refuse_bytes,
        });
        let page: u64 = connection
            .pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))
            .map_err(failure)?
            .unsigned_abs();
        let watched = log.clone();
        connection
            .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
                watched.bytes.store(u64::from(pages.unsigned_abs()) * page, Ordering::Relaxed);
                Ok(())
            }))
            .map_err(failure)?;
        let (jobs, queue) = mpsc::channel();
        let beside = connection::open(&options.path)?;
        spawn("oncebox-writer", {
            let log = log.clone();
            move || write(connection, &queue, &log)
        })?;
        spawn("oncebox-checkpoint", {
            let (log, path) = (Arc::downgrade(&log), options.path.clone());
            move || {
                while woken.recv().is_ok() {
                    let Some(log) = log.upgrade() else { return };
                    copy_back(&beside, &log, &path);
                }
            }
        })?;
        Ok(Self { jobs: Arc::new(Mutex::new(Some(jobs))), log })
    }

    /// Runs `work` on the writer's connection.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, outcome) = oneshot::channel();
        let log = self.log.clone();
        self.send(Box::new(move |connection| {
            let result = log.usable().and_then(|()| work(connection));
            log.note(result.as_ref().err());
            let _ = done.send(result);
        }))?;
        outcome.await.map_err(|_| closed())?
    }

    /// As [`Self::run`], for work that tells others itself what came of it. It is run even if
    /// the store must not be used, to hear of that.
    pub(super) fn post(
        &self,
        work: impl FnOnce(Result<&mut Connection, StoreError>) -> Result<(), StoreError>
        + Send
        + 'static,
    ) -> Result<(), StoreError> {
        let log = self.log.clone();
        self.send(Box::new(move |connection| {
            let result = work(log.usable().map(|()| connection));
            log.note(result.as_ref().err());
        }))
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.lock().expect("no panic while sending");
        jobs.as_ref().ok_or_else(closed)?.send(job).map_err(|_| closed())
    }

    /// A reader of another process that never ends its transaction keeps the log from being
    /// reset. It must not fill the disk.
    pub(super) fn refuse_when_log_is_pinned(&self) -> Result<(), StoreError> {
        if self.log.bytes.load(Ordering::Relaxed) < self.log.refuse_bytes {
            return Ok(());
        }
        let _ = self.log.wake.try_send(());
        Err(StoreError::Unavailable(
            "the write-ahead log has reached its limit; a reader holds an old snapshot open".into(),
        ))
    }

    pub(super) fn health(&self) -> Result<Health, StoreError> {
        self.log.usable()?;
        let bytes = self.log.bytes.load(Ordering::Relaxed);
        let warning = (bytes >= self.log.alert_bytes).then(|| {
            format!("the write-ahead log has grown to {bytes} bytes; is a reader left open?")
        });
        Ok(Health { wal_bytes: Some(bytes), warning, ..Health::default() })
    }

    /// Copies the log back, once nothing else is to come. Nothing is synced after a failure.
    pub(super) async fn settle(&self) {
        let settled = self.run(|connection| connection::settle(connection)).await;
        if let Err(error) = settled {
            warn!(%error, "the store was closed without copying its log back");
        }
    }

    /// Ends the threads. Gives up the lock on the file once the writer has done everything it was
    /// given.
    pub(super) async fn close(&self, serving: Option<ServeLock>) {
        let Some(jobs) = self.jobs.lock().expect("no panic while closing").take() else { return };
        let (done, closed) = oneshot::channel();
        let last: Job = Box::new(move |_| {
            drop(serving);
            let _ = done.send(());
        });
        if jobs.send(last).is_ok() {
            let _ = closed.await;
        }
    }
}

impl Log {
    fn usable(&self) -> Result<(), StoreError> {
        self.failed.get().map_or(Ok(()), |reason| Err(StoreError::Fatal(reason.clone())))
    }

    /// Takes note of an error after which nothing is written.
    fn note(&self, error: Option<&StoreError>) {
        if let Some(StoreError::Fatal(reason)) = error {
            self.fail(reason);
        }
    }

    fn fail(&self, reason: &str) {
        if self.failed.set(reason.to_owned()).is_ok() {
            error!(%reason, "the embedded store failed and will not be written again");
        }
    }
}

pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

fn write(mut connection: Connection, jobs: &Receiver<Job>, log: &Log) {
    let mut next_copy = log.checkpoint_bytes;
    while let Ok(job) = jobs.recv() {
        job(&mut connection);
        if log.finish.swap(false, Ordering::Relaxed) && log.usable().is_ok() {
            // Only what was committed since the background copy is left, so this is short; the
            // next commit then starts the log from its beginning.
            checkpoint(&connection, log);
        }
        let bytes = log.bytes.load(Ordering::Relaxed);
        if bytes + log.checkpoint_bytes < next_copy {
            next_copy = log.checkpoint_bytes;
        }
        if bytes >= next_copy {
            next_copy = bytes + log.checkpoint_bytes;
            let _ = log.wake.try_send(());
        }
    }
}

/// Copies the log back beside the writer, which goes on committing meanwhile.
fn copy_back(connection: &Connection, log: &Log, path: &Path) {
    if log.usable().is_err() {
        return;
    }
    checkpoint(connection, log);
    log.finish.store(true, Ordering::Relaxed);
    let bytes = log.bytes.load(Ordering::Relaxed);
    if bytes >= log.alert_bytes {
        let path = path.display();
        warn!(%path, bytes, "the write-ahead log cannot be reset; is a reader left open?");
    }
}

fn checkpoint(connection: &Connection, log: &Log) {
    let pages = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    match pages.map_err(failure) {
        Ok((in_log, copied)) if in_log == copied => log.bytes.store(0, Ordering::Relaxed),
        Ok(_) => {}
        Err(StoreError::Fatal(reason)) => log.fail(&reason),
        Err(error) => warn!(%error, "the write-ahead log could not be copied back yet"),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
        .map_err(|error| StoreError::Unavailable(format!("cannot start a thread: {error}")))
}
