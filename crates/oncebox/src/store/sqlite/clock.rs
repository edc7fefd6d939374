//! The store's clock: leases and due times run on it, and on no worker's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use rusqlite::{Connection, OptionalExtension};

use super::connection::{failure, in_transaction, run};
use crate::clock::{Clock, SystemClock};
use crate::store::{Purpose, StoreError};

/// From this difference on, others are told how far the clock is from the wall, in milliseconds.
const WORTH_TELLING: i64 = 250;

/// Starts at the wall time and then goes on evenly, whatever happens to the wall clock. Those who
/// open the file beside a serving process go by that process's clock.
#[derive(Debug, Clone)]
pub(crate) struct StoreClock {
    began: Instant,
    began_at: i64,
    /// How far the file says the serving process is ahead of the wall; none if this is not it.
    told: Option<Arc<AtomicI64>>,
    /// When the last serving process stopped in order, where no process has served the file since.
    stopped_at: Option<i64>,
}

impl StoreClock {
    pub(super) fn start(connection: &Connection, purpose: Purpose) -> Result<Self, StoreError> {
        // Both at once: what is written below takes its time.
        let (wall, began) = (SystemClock.now().as_millisecond(), Instant::now());
        let (began_at, told, stopped_at) = match purpose {
            Purpose::Serve => {
                set(connection, 0).map_err(failure)?;
                (wall, Some(Arc::new(AtomicI64::new(0))), None)
            }
            Purpose::Operate => {
                let ahead = mark(connection, include_str!("sql/find_clock.sql"));
                let stopped_at = mark(connection, include_str!("sql/find_stop.sql"));
                let ahead = ahead.map_err(failure)?.unwrap_or(0);
                (wall + ahead, None, stopped_at.map_err(failure)?)
            }
        };
        Ok(Self { began, began_at, told, stopped_at })
    }

    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        let since = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.began_at.saturating_add(since)
    }

    /// The time by which leases are judged. It stands still from an orderly stop to the next start,
    /// so that an operator command in between finds the leases that the start will resume.
    pub(super) fn lease_time(&self) -> i64 {
        self.stopped_at.unwrap_or_else(|| self.now())
    }

    /// The day it is.
    pub(super) fn today(&self) -> i32 {
        i32::try_from(self.now().div_euclid(86_400_000)).unwrap_or(i32::MAX)
    }

    /// Writes down how far this clock is from the wall, should that have changed: a machine that
    /// slept, or whose clock was set, must not have operators name times that never come.
    pub(super) fn tell(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(told) = &self.told else { return Ok(()) };
        let ahead = self.now() - SystemClock.now().as_millisecond();
        if (ahead - told.load(Ordering::Relaxed)).abs() < WORTH_TELLING {
            return Ok(());
        }
        set(connection, ahead)?;
        told.store(ahead, Ordering::Relaxed);
        Ok(())
    }

    /// Writes down that this process stopped in order, and when by this clock: the end of a lease
    /// less that time is what remains of it. Operators go by the wall clock from here on.
    pub(super) fn stop(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let Some(told) = &self.told else { return Ok(()) };
        in_transaction(connection, |transaction| {
            set(transaction, 0)?;
            told.store(0, Ordering::Relaxed);
            run(transaction, include_str!("sql/mark_stop.sql"), [self.now()]).map(drop)
        })
    }
}

/// Removes the mark of an orderly stop. Returns the time of that stop, by the clock of the process
/// that wrote it; `None` after a crash.
pub(super) fn take_stop(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    mark(connection, include_str!("sql/take_stop.sql"))
}

fn set(connection: &Connection, ahead: i64) -> rusqlite::Result<()> {
    run(connection, include_str!("sql/set_clock.sql"), [ahead]).map(drop)
}

fn mark(connection: &Connection, sql: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()
}
