//! Waiting with a deadline, for the things that cannot wake us: files, other processes.

use std::time::{Duration, Instant};

/// How long any wait of the testkit lasts before it fails the test. Generous, since a loaded
/// machine is no reason to fail; it only matters when something hangs.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How soon a condition without a wake-up is looked at again, at least and at most. In between, the
/// longer the wait the longer the pause: looking may cost what is waited for.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));

/// Waits until `condition` holds.
///
/// # Panics
///
/// When it does not hold within [`DEADLINE`].
///
/// ```
/// let started = std::time::Instant::now();
/// oncebox_testkit::wait::until("a millisecond has passed", || started.elapsed().as_millis() > 0);
/// ```
#[track_caller]
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(holds_within(DEADLINE, condition), "waited {DEADLINE:?} in vain until {what}");
}

/// Whether `condition` comes to hold within `limit`.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if began.elapsed() >= limit {
            return false;
        }
        std::thread::sleep((began.elapsed() / 16).clamp(PAUSES.0, PAUSES.1));
    }
}
