//! The store's clock: leases and due times run on it, and on no worker's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use rusqlite::{Connection, OptionalExtension};

use super::connection::{failure, run};
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
}

impl StoreClock {
    pub(super) fn start(connection: &Connection, purpose: Purpose) -> Result<Self, StoreError> {
        // Both at once: what is written below takes its time.
        let (wall, began) = (SystemClock.now().as_millisecond(), Instant::now());
        let (began_at, told) = match purpose {
            Purpose::Serve => {
                set(connection, 0).map_err(failure)?;
                (wall, Some(Arc::new(AtomicI64::new(0))))
            }
            Purpose::Operate => (wall + ahead(connection).map_err(failure)?, None),
        };
        Ok(Self { began, began_at, told })
    }

    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        let since = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.began_at.saturating_add(since)
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

    /// Leaves the wall clock to those who open the file while nobody serves it.
    pub(super) fn stop(&self, connection: &Connection) -> Result<(), StoreError> {
        match &self.told {
            Some(told) if told.swap(0, Ordering::Relaxed) != 0 => {
                set(connection, 0).map_err(failure)
            }
            _ => Ok(()),
        }
    }
}

fn set(connection: &Connection, ahead: i64) -> rusqlite::Result<()> {
    run(connection, include_str!("sql/set_clock.sql"), [ahead]).map(drop)
}

fn ahead(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached(include_str!("sql/find_clock.sql"))?;
    let ahead = statement.query_row([], |row| row.get(0)).optional()?;
    Ok(ahead.unwrap_or(0))
}
