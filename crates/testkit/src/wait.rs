//! Waiting with a deadline, for the things that cannot wake us: files, other processes.

use std::time::{Duration, Instant};

/// How long any wait of the testkit lasts before it fails the test. Generous, since a loaded
/// machine is no reason to fail; it only matters when something hangs.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How often a condition without a wake-up is looked at.
const INTERVAL: Duration = Duration::from_millis(2);

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
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(INTERVAL);
    }
}
