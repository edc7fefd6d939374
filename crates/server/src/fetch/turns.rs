//! The rate of a route's fetches: requests take turns in the order they came.

use std::num::NonZeroU32;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::Mutex;

/// Hands out turns.
pub(super) struct Turns {
    limiter: DefaultDirectRateLimiter,
    clock: DefaultClock,
    /// Only the first in the line looks at the limiter, so that nobody is overtaken for ever.
    line: Mutex<()>,
}

impl Turns {
    /// So many per second, of which a tenth may come at once after a pause.
    pub(super) fn new(rate: NonZeroU32) -> Self {
        let burst = NonZeroU32::new(rate.get() / 10).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(rate).allow_burst(burst);
        let clock = DefaultClock::default();
        Self { limiter: RateLimiter::direct(quota), clock, line: Mutex::new(()) }
    }

    /// Waits for a turn. Whoever stops waiting has taken none.
    pub(super) async fn take(&self) {
        let _first = self.line.lock().await;
        while let Err(later) = self.limiter.check() {
            tokio::time::sleep(later.wait_time_from(self.clock.now())).await;
        }
    }
}
