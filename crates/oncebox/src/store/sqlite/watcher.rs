//! Keeps an eye on the writer's connection while code runs on it that is not ours.
//!
//! A handler gets the real transaction, and could end it or keep it for ever. While one runs,
//! nothing commits, whoever asks for it, and a statement that takes too long is interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rusqlite::Connection;

use crate::limits::APPLY_TIME;

/// Steps of a statement between two looks at the time: some ten microseconds.
const STEPS: i32 = 1000;

/// What is watched, shared with the hooks of the connection.
pub(super) struct Watcher {
    began: Instant,
    /// Microseconds after `began` at which a statement is interrupted; none if it is zero.
    deadline: AtomicU64,
    running: AtomicBool,
    interrupted: AtomicBool,
    refused_commit: AtomicBool,
    rolled_back: AtomicBool,
}

/// What happened while a handler ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// A statement took too long.
    pub(super) interrupted: bool,
    /// It tried to commit, which was turned into a rollback.
    pub(super) refused_commit: bool,
    rolled_back: bool,
}

impl Seen {
    /// Whether the transaction it ran in is gone, even if another has been begun.
    pub(super) fn is_over(self) -> bool {
        self.rolled_back || self.refused_commit
    }
}

impl Watcher {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            deadline: AtomicU64::new(0),
            running: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            refused_commit: AtomicBool::new(false),
            rolled_back: AtomicBool::new(false),
        })
    }

    /// Sets the hooks of the connection. Handlers cannot: that takes a connection of one's own.
    pub(super) fn install(self: &Arc<Self>, connection: &mut Connection) -> rusqlite::Result<()> {
        let watcher = self.clone();
        connection.commit_hook(Some(move || {
            let refuse = watcher.running.load(Ordering::Relaxed);
            watcher.refused_commit.fetch_or(refuse, Ordering::Relaxed);
            refuse
        }))?;
        let watcher = self.clone();
        connection.rollback_hook(Some(move || {
            let noted = watcher.running.load(Ordering::Relaxed);
            watcher.rolled_back.fetch_or(noted, Ordering::Relaxed);
        }))?;
        let watcher = self.clone();
        connection.progress_handler(STEPS, Some(move || watcher.is_late()))
    }

    /// A handler begins.
    pub(super) fn begin(&self) {
        let deadline = (self.began.elapsed() + APPLY_TIME).as_micros();
        self.deadline.store(u64::try_from(deadline).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.interrupted.store(false, Ordering::Relaxed);
        self.refused_commit.store(false, Ordering::Relaxed);
        self.rolled_back.store(false, Ordering::Relaxed);
        self.running.store(true, Ordering::Relaxed);
    }

    /// It has returned.
    pub(super) fn end(&self) -> Seen {
        self.running.store(false, Ordering::Relaxed);
        self.deadline.store(0, Ordering::Relaxed);
        Seen {
            interrupted: self.interrupted.load(Ordering::Relaxed),
            refused_commit: self.refused_commit.load(Ordering::Relaxed),
            rolled_back: self.rolled_back.load(Ordering::Relaxed),
        }
    }

    fn is_late(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline == 0 || self.began.elapsed().as_micros() <= u128::from(deadline) {
            return false;
        }
        self.interrupted.store(true, Ordering::Relaxed);
        true
    }
}
