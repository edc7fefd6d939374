//! Watching our own clock.
//!
//! Signatures are judged by the time on this machine. Should that be wrong, every event would be
//! rejected as too old, and some providers never send again what was refused. So the clock is
//! compared with the database's, and without one with its own steady progress; while it is
//! suspect, a rejection that is only about time asks the sender to come back instead.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use oncebox::clock::Clock;
use oncebox::limits;
use oncebox::store::{Health, Store};
use tracing::{error, info};

use crate::metrics::Metrics;

/// How often the clock is looked at.
pub const INTERVAL: Duration = Duration::from_secs(30);

/// How long a clock that jumped is suspect. By then whoever set it has set it right.
const JUMP_MEMORY: Duration = Duration::from_secs(600);

/// Whether the clock can be trusted.
#[derive(Debug)]
pub struct ClockWatch {
    suspect: AtomicBool,
    anchor: Mutex<Anchor>,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    wall: Timestamp,
    steady: Instant,
    jumped_at: Option<Instant>,
}

impl ClockWatch {
    /// A watch that trusts the clock until it is seen to be wrong.
    pub fn new(now: Timestamp, steady: Instant) -> Self {
        let anchor = Anchor { wall: now, steady, jumped_at: None };
        Self { suspect: AtomicBool::new(false), anchor: Mutex::new(anchor) }
    }

    /// Whether the clock is likely to be wrong.
    pub fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Relaxed)
    }

    /// Compares the clock once. A store that does not answer leaves the verdict as it is.
    pub async fn run_once(&self, clock: &dyn Clock, store: &dyn Store, metrics: &Metrics) {
        let asked = store.health();
        let Ok(Ok(health)) = tokio::time::timeout(Duration::from_secs(5), asked).await else {
            return;
        };
        if let Some(bytes) = health.wal_bytes {
            metrics.wal_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        let skew = self.compare(clock.now(), Instant::now(), &health);
        metrics.clock_skew_seconds.set(skew.as_secs_f64());
    }

    /// The difference to the reference, and what it means.
    fn compare(&self, now: Timestamp, steady: Instant, health: &Health) -> Duration {
        let (skew, suspect) = match health.clock {
            Some(theirs) => {
                let skew = now.duration_since(theirs).unsigned_abs();
                (skew, skew > limits::CLOCK_SKEW)
            }
            None => self.compare_progress(now, steady),
        };
        let before = self.suspect.swap(suspect, Ordering::Relaxed);
        let skew_seconds = skew.as_secs_f64();
        match (before, suspect) {
            (false, true) => error!(
                skew_seconds,
                "the clock is suspect: events that seem too old or too new are told to come \
                 back, not rejected. Check the time synchronisation of this machine"
            ),
            (true, false) => info!(skew_seconds, "the clock is trusted again"),
            _ => {}
        }
        skew
    }

    fn compare_progress(&self, now: Timestamp, steady: Instant) -> (Duration, bool) {
        let mut anchor = self.anchor.lock().expect("no panic while comparing");
        let expected = steady.saturating_duration_since(anchor.steady);
        let passed = now.duration_since(anchor.wall);
        let skew = match jiff::SignedDuration::try_from(expected) {
            Ok(expected) => passed.saturating_sub(expected).unsigned_abs(),
            Err(_) => Duration::ZERO,
        };
        if skew <= limits::CLOCK_SKEW {
            anchor.jumped_at = None;
            return (skew, false);
        }
        let jumped_at = *anchor.jumped_at.get_or_insert(steady);
        if steady.saturating_duration_since(jumped_at) >= JUMP_MEMORY {
            *anchor = Anchor { wall: now, steady, jumped_at: None };
            return (Duration::ZERO, false);
        }
        (skew, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_760_000_000 + seconds).unwrap()
    }

    fn health(clock: Option<Timestamp>) -> Health {
        Health { clock, wal_bytes: None, warning: None }
    }

    #[test]
    fn a_clock_that_jumps_is_suspect_for_a_while() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let watch = ClockWatch::new(at(0), start);
        watch.compare(at(31), later(30), &health(None));
        assert!(!watch.is_suspect());
        watch.compare(at(660), later(60), &health(None));
        assert!(watch.is_suspect());
        watch.compare(at(1200), later(600), &health(None));
        assert!(watch.is_suspect());
        watch.compare(at(1260), later(661), &health(None));
        assert!(!watch.is_suspect());
        watch.compare(at(1290), later(691), &health(None));
        assert!(!watch.is_suspect());
    }

    #[test]
    fn a_clock_that_jumps_back_is_suspect_until_it_is_set_right() {
        let start = Instant::now();
        let watch = ClockWatch::new(at(0), start);
        watch.compare(at(-100), start + Duration::from_secs(30), &health(None));
        assert!(watch.is_suspect());
        watch.compare(at(60), start + Duration::from_secs(60), &health(None));
        assert!(!watch.is_suspect());
    }

    #[test]
    fn the_clock_of_the_database_decides_where_there_is_one() {
        let start = Instant::now();
        let watch = ClockWatch::new(at(0), start);
        let skew = watch.compare(at(600), start, &health(Some(at(599))));
        assert_eq!((skew, watch.is_suspect()), (Duration::from_secs(1), false));
        watch.compare(at(0), start, &health(Some(at(61))));
        assert!(watch.is_suspect());
    }
}
