//! How fast a route goes: the rate it is configured with, and for a while half of what it had
//! whenever its destination asked for fewer requests.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::rate::Bucket;
use crate::limits::SLOWED_FOR;

/// Answers that were under way together ask for less once.
const ASKED_ONCE: Duration = Duration::from_secs(1);

/// The slowest a route goes, in attempts per second.
const SLOWEST: f64 = 0.1;

/// How long attempts are counted for to know how fast a route goes.
const MEASURED: Duration = Duration::from_secs(5);

/// The pace of a route. It reads no clock.
#[derive(Debug)]
pub(super) struct Throttle {
    configured: Option<f64>,
    slowed: Option<Slowed>,
    bucket: Option<Bucket>,
    measured: Measured,
}

#[derive(Clone, Copy, Debug)]
struct Slowed {
    per_second: f64,
    /// The rate before the destination first asked for less.
    before: f64,
    asked_at: Instant,
    until: Instant,
}

/// Attempts of the current and the last few seconds.
#[derive(Debug)]
struct Measured {
    since: Instant,
    count: usize,
    last: f64,
}

impl Throttle {
    pub(super) fn new(rate: Option<NonZeroU32>, now: Instant) -> Self {
        let configured = rate.map(per_second);
        Self {
            configured,
            slowed: None,
            bucket: configured.map(|rate| Bucket::new(rate, now)),
            measured: Measured { since: now, count: 0, last: 0.0 },
        }
    }

    /// Changes the configured rate; what a destination asked for holds until the rate differs.
    pub(super) fn set_rate(&mut self, rate: Option<NonZeroU32>, now: Instant) {
        let configured = rate.map(per_second);
        if configured == self.configured {
            return;
        }
        self.configured = configured;
        self.slowed = None;
        self.apply(now);
    }

    /// How many attempts may be claimed now; `None` is no limit.
    pub(super) fn available(&mut self, now: Instant) -> Option<usize> {
        self.ease(now);
        self.bucket.as_mut().map(|bucket| bucket.available(now))
    }

    /// Takes note of what was claimed.
    pub(super) fn spend(&mut self, attempts: usize, now: Instant) {
        self.measured.add(attempts, now);
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(attempts);
        }
    }

    /// Takes back what was not begun.
    pub(super) fn refund(&mut self, attempts: usize) {
        self.measured.count = self.measured.count.saturating_sub(attempts);
        if let Some(bucket) = &mut self.bucket {
            bucket.refund(attempts);
        }
    }

    /// When the next claim is worth its while, if it is the rate that is in its way.
    pub(super) fn next_at(&mut self, now: Instant) -> Option<Instant> {
        let bucket = self.bucket.as_mut()?;
        (bucket.available(now) == 0).then(|| bucket.next_at())
    }

    /// The destination asked for fewer requests: half of what it had. Returns the rate from now
    /// on, if it changed.
    pub(super) fn slow_down(&mut self, now: Instant) -> Option<f64> {
        if self.slowed.is_some_and(|slowed| now < slowed.asked_at + ASKED_ONCE) {
            return None;
        }
        let current = self.slowed.map(|slowed| slowed.per_second).or(self.configured);
        let current = current.unwrap_or_else(|| self.measured.rate(now).max(1.0));
        let before = self.slowed.map_or(current, |slowed| slowed.before);
        let per_second = (current / 2.0).max(SLOWEST);
        self.slowed = Some(Slowed { per_second, before, asked_at: now, until: now + SLOWED_FOR });
        self.apply(now);
        Some(per_second)
    }

    /// The rate that the route is slowed down to.
    pub(super) fn slowed_to(&self, now: Instant) -> Option<f64> {
        let slowed = self.slowed?;
        let eased = slowed.until <= now && 2.0 * slowed.per_second >= slowed.before;
        (!eased).then_some(slowed.per_second)
    }

    /// Doubles the rate once nothing was asked for a while, until it is what it was.
    fn ease(&mut self, now: Instant) {
        let Some(slowed) = self.slowed.filter(|slowed| slowed.until <= now) else { return };
        let (per_second, until) = (2.0 * slowed.per_second, now + SLOWED_FOR);
        let goes_on = per_second < slowed.before;
        self.slowed = goes_on.then_some(Slowed { per_second, until, ..slowed });
        self.apply(now);
    }

    fn apply(&mut self, now: Instant) {
        let slowed = self.slowed.map(|slowed| slowed.per_second);
        let rate = slowed.into_iter().chain(self.configured).reduce(f64::min);
        self.bucket = match (self.bucket.take(), rate) {
            (Some(mut bucket), Some(rate)) => {
                bucket.set_rate(rate, now);
                Some(bucket)
            }
            (None, Some(rate)) => Some(Bucket::new(rate, now)),
            (_, None) => None,
        };
    }
}

impl Measured {
    fn add(&mut self, attempts: usize, now: Instant) {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= MEASURED {
            let was_long_ago = elapsed >= 2 * MEASURED;
            self.last = if was_long_ago { 0.0 } else { self.rate(now) };
            (self.since, self.count) = (now, 0);
        }
        self.count += attempts;
    }

    /// Attempts per second.
    fn rate(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.since).max(Duration::from_secs(1));
        self.last.max(self.count as f64 / elapsed.as_secs_f64())
    }
}

fn per_second(rate: NonZeroU32) -> f64 {
    f64::from(rate.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(per_second: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(per_second)
    }

    #[test]
    fn a_rate_is_halved_and_comes_back() {
        let start = Instant::now();
        let mut throttle = Throttle::new(rate(40), start);
        assert_eq!(throttle.slow_down(start), Some(20.0));
        assert_eq!(throttle.slow_down(start + SECOND / 2), None, "the same burst");
        assert_eq!(throttle.slow_down(start + SECOND), Some(10.0));
        throttle.available(start + SECOND + SLOWED_FOR);
        assert_eq!(throttle.slowed_to(start + SECOND + SLOWED_FOR), Some(20.0));
        let later = start + SECOND + 2 * SLOWED_FOR;
        throttle.available(later);
        assert_eq!(throttle.slowed_to(later), None);
        assert_eq!(throttle.available(later + SECOND), Some(4), "forty a second again");
    }

    #[test]
    fn without_a_rate_it_is_half_of_what_came_through() {
        let start = Instant::now();
        let mut throttle = Throttle::new(None, start);
        for tenth in 0..100 {
            let now = start + SECOND * tenth / 10;
            assert_eq!(throttle.available(now), None);
            throttle.spend(2, now);
        }
        let slowed = throttle.slow_down(start + 10 * SECOND).unwrap();
        assert!((9.0..=11.0).contains(&slowed), "{slowed}");
        assert_eq!(throttle.slowed_to(start + 10 * SECOND), Some(slowed));
        let later = start + 10 * SECOND + SLOWED_FOR;
        assert_eq!(throttle.slowed_to(later), None);
        assert_eq!(throttle.available(later), None);
    }

    #[test]
    fn the_slowest_is_not_nothing_and_a_change_begins_anew() {
        let mut now = Instant::now();
        let mut throttle = Throttle::new(rate(1), now);
        for _ in 0..10 {
            now += SECOND;
            throttle.slow_down(now);
        }
        assert_eq!(throttle.slowed_to(now), Some(SLOWEST));
        // As every reload does.
        throttle.set_rate(rate(1), now);
        assert_eq!(throttle.slowed_to(now), Some(SLOWEST));
        throttle.set_rate(rate(2), now);
        assert_eq!(throttle.slowed_to(now), None);
    }
}
