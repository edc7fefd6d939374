//! Where the time comes from.
//!
//! Everything that needs the wall clock is handed a [`Clock`], so that tests and drills can move
//! it. Leases and due times do not use it: those run on the store's own clock.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// A wall clock.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one door time comes in by")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    milliseconds: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { milliseconds: AtomicI64::new(now.as_millisecond()) }
    }

    /// Moves the clock by `seconds`, which may be negative.
    pub fn advance_secs(&self, seconds: i64) {
        self.milliseconds.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.milliseconds.load(Ordering::SeqCst))
            .expect("a manual clock stays within representable time")
    }
}
