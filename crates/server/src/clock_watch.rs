//! Watching our own clock.
//!
//! Signatures are judged by the time on this machine. Should that be wrong, every event would be
//! rejected as too old, and some providers never send again what was refused. So the clock is
//! compared with the database's, and with its own steady progress; while it is suspect, a
//! rejection that is only about time asks the sender to come back instead.
//!
//! What was deleted does not come back. So after a jump ahead nothing is deleted until the clock
//! is back, however long that takes: not even if the database agrees, which may run on the same
//! machine and have jumped along.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use oncebox::clock::Clock;
use oncebox::limits;
use oncebox::store::{Health, Store};
use tracing::{error, info};

use crate::metrics::Metrics;

/// How often the clock is compared with the database's.
pub const INTERVAL: Duration = Duration::from_secs(30);

/// How long a clock that jumped is suspect. By then whoever set it has set it right.
const JUMP_MEMORY: Duration = Duration::from_secs(600);

/// Whether the clock can be trusted.
#[derive(Debug)]
pub struct ClockWatch {
    /// When the watch began.
    start: Moment,
    seen: Mutex<Seen>,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
struct Moment {
    wall: Timestamp,
    steady: Instant,
}

impl Moment {
    fn now(clock: &dyn Clock) -> Self {
        Self { wall: clock.now(), steady: Instant::now() }
    }

    /// How much more time has passed since `earlier` by the wall than by the steady clock.
    fn ahead_since(self, earlier: Self) -> SignedDuration {
        let steady = self.steady.saturating_duration_since(earlier.steady);
        let steady = SignedDuration::try_from(steady).unwrap_or(SignedDuration::MAX);
        self.wall.duration_since(earlier.wall).saturating_sub(steady)
    }
}

/// What is known about the clock.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The last moment that was believed: the start, or the end of the memory of a jump.
    believed: Moment,
    jumped_at: Option<Instant>,
    differs_from_database: bool,
    suspect: bool,
    /// Whether it is ahead of where its start and the time since would put it.
    ahead: bool,
}

impl ClockWatch {
    /// A watch that trusts the clock until it is seen to be wrong.
    pub fn new(now: Timestamp, steady: Instant) -> Self {
        let start = Moment { wall: now, steady };
        let seen = Seen {
            believed: start,
            jumped_at: None,
            differs_from_database: false,
            suspect: false,
            ahead: false,
        };
        Self { start, seen: Mutex::new(seen) }
    }

    /// Whether the clock was likely to be wrong when it was last looked at.
    pub fn is_suspect(&self) -> bool {
        self.seen.lock().expect("no panic while comparing").suspect
    }

    /// Whether the clock is likely to be wrong at this moment. Asks nobody else, so it may be
    /// called for a request: the first event after a jump must not be rejected either.
    pub fn is_suspect_now(&self, clock: &dyn Clock) -> bool {
        self.look(Moment::now(clock), None);
        self.is_suspect()
    }

    /// Whether something may be deleted because it is old by this clock.
    pub fn trusts_for_deletion(&self, clock: &dyn Clock) -> bool {
        self.look(Moment::now(clock), None);
        let seen = self.seen.lock().expect("no panic while comparing");
        !seen.suspect && !seen.ahead
    }

    /// Compares the clock once. A store that does not answer leaves its verdict as it is.
    pub async fn run_once(&self, clock: &dyn Clock, store: &dyn Store, metrics: &Metrics) {
        let asked = store.health();
        let Ok(Ok(health)) = tokio::time::timeout(Duration::from_secs(5), asked).await else {
            self.look(Moment::now(clock), None);
            return;
        };
        metrics.health(&health);
        let skew = self.look(Moment::now(clock), Some(&health));
        metrics.clock_skew_seconds.set(skew.as_secs_f64());
    }

    /// Notes what this moment says about the clock. Returns the difference to the database, or
    /// without one to the clock's own progress.
    fn look(&self, now: Moment, health: Option<&Health>) -> Duration {
        let mut seen = self.seen.lock().expect("no panic while comparing");
        let before = *seen;
        let mut skew = now.ahead_since(seen.believed).unsigned_abs();
        if skew <= limits::CLOCK_SKEW {
            seen.jumped_at = None;
        } else {
            let jumped_at = *seen.jumped_at.get_or_insert(now.steady);
            if now.steady.saturating_duration_since(jumped_at) >= JUMP_MEMORY {
                (seen.believed, seen.jumped_at) = (now, None);
                skew = Duration::ZERO;
            }
        }
        if let Some(theirs) = health.and_then(|health| health.clock) {
            skew = now.wall.duration_since(theirs).unsigned_abs();
            seen.differs_from_database = skew > limits::CLOCK_SKEW;
        }
        seen.suspect = seen.differs_from_database || seen.jumped_at.is_some();
        let limit = SignedDuration::try_from(limits::CLOCK_SKEW).unwrap_or(SignedDuration::ZERO);
        seen.ahead = now.ahead_since(self.start) > limit;
        let after = *seen;
        drop(seen);
        report(before, after, skew);
        skew
    }
}

/// Tells the operator what changed.
fn report(before: Seen, after: Seen, skew: Duration) {
    let skew_seconds = skew.as_secs_f64();
    match (before.suspect, after.suspect) {
        (false, true) => error!(
            skew_seconds,
            "the clock is suspect: events that seem too old or too new are told to come back, \
             not rejected. Check the time synchronisation of this machine"
        ),
        (true, false) => info!(skew_seconds, "the clock is trusted again"),
        _ => {}
    }
    match (before.ahead, after.ahead) {
        (false, true) => error!(
            "the clock jumped ahead: retention removes nothing until it is set back or the \
             server is restarted. If the time is right now, restart it, or remove what has \
             expired with `oncebox retention run`"
        ),
        (true, false) => info!("the clock is back: retention goes on"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use oncebox::clock::ManualClock;

    use super::*;

    const START: i64 = 1_760_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(START + seconds).unwrap()
    }

    fn health(clock: Option<Timestamp>) -> Health {
        Health { clock, ..Health::default() }
    }

    /// A watch that began at 0 by both clocks, and how it looks at later moments.
    struct Bed {
        watch: ClockWatch,
        steady: Instant,
    }

    impl Bed {
        fn new() -> Self {
            let steady = Instant::now();
            Self { watch: ClockWatch::new(at(0), steady), steady }
        }

        /// Whether the clock is suspect, and whether it is ahead, when it shows `wall` after
        /// `steady` seconds.
        fn look(&self, wall: i64, steady: u64, theirs: Option<i64>) -> (bool, bool) {
            let steady = self.steady + Duration::from_secs(steady);
            let health = health(theirs.map(at));
            self.watch.look(Moment { wall: at(wall), steady }, Some(&health));
            let seen = self.watch.seen.lock().unwrap();
            (seen.suspect, seen.ahead)
        }
    }

    #[test]
    fn a_clock_that_jumps_is_suspect_for_a_while_and_deletes_nothing_ever_after() {
        let bed = Bed::new();
        assert_eq!(bed.look(31, 30, None), (false, false));
        assert_eq!(bed.look(660, 60, None), (true, true));
        assert_eq!(bed.look(1200, 600, None), (true, true));
        assert_eq!(bed.look(1260, 661, None), (false, true));
        assert_eq!(bed.look(1290, 691, None), (false, true));
        assert_eq!(bed.look(1_000_600, 1_000_000, None), (false, true));
        // Set back, it has jumped again, and is where it should be.
        assert_eq!(bed.look(1_000_030, 1_000_030, None), (true, false));
        assert_eq!(bed.look(1_000_630, 1_000_630, None), (false, false));
    }

    #[test]
    fn a_clock_that_jumps_back_is_suspect_until_it_is_set_right() {
        let bed = Bed::new();
        assert_eq!(bed.look(-100, 30, None), (true, false));
        assert_eq!(bed.look(60, 60, None), (false, false));
    }

    #[test]
    fn the_clock_of_the_database_is_compared_where_there_is_one() {
        let bed = Bed::new();
        assert_eq!(bed.look(0, 0, Some(61)), (true, false));
        assert_eq!(bed.look(0, 0, Some(59)), (false, false));
    }

    /// A database on the same machine jumps along, and agrees.
    #[test]
    fn a_jump_is_noticed_even_if_the_database_agrees() {
        let bed = Bed::new();
        assert_eq!(bed.look(630, 30, Some(630)), (true, true));
        assert_eq!(bed.look(1230, 630, Some(1230)), (false, true));
    }

    /// Between two comparisons with the database as well.
    #[test]
    fn a_jump_is_noticed_by_whoever_asks_first() {
        let clock = ManualClock::at(at(0));
        let watch = ClockWatch::new(clock.now(), Instant::now());
        assert!(!watch.is_suspect_now(&clock) && watch.trusts_for_deletion(&clock));
        clock.advance_secs(600);
        assert!(!watch.is_suspect());
        assert!(watch.is_suspect_now(&clock));
        assert!(watch.is_suspect());
        assert!(!watch.trusts_for_deletion(&clock));
        clock.advance_secs(-600);
        assert!(!watch.is_suspect_now(&clock) && watch.trusts_for_deletion(&clock));
    }

    #[test]
    fn nothing_is_deleted_by_a_clock_that_has_just_jumped() {
        let clock = ManualClock::at(at(0));
        let watch = ClockWatch::new(clock.now(), Instant::now());
        clock.advance_secs(40 * 86_400);
        assert!(!watch.trusts_for_deletion(&clock));
    }
}
