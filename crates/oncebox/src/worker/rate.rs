//! The rate of a route: a bucket that fills evenly and overflows soon, so that a pause is not
//! followed by a burst.

use std::time::{Duration, Instant};

/// Tokens for attempts. It reads no clock.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: f64,
    tokens: f64,
    filled_at: Instant,
}

impl Bucket {
    pub(super) fn new(per_second: f64, now: Instant) -> Self {
        Self { per_second, tokens: 1.0, filled_at: now }
    }

    /// Changes the rate and keeps what is in the bucket.
    pub(super) fn set_rate(&mut self, per_second: f64, now: Instant) {
        self.fill(now);
        self.per_second = per_second;
        self.tokens = self.tokens.min(self.size());
    }

    /// How many attempts may be claimed now.
    pub(super) fn available(&mut self, now: Instant) -> usize {
        self.fill(now);
        // Never negative and far below what a usize holds: the size is a tenth of a u32.
        self.tokens.max(0.0) as usize
    }

    /// Takes tokens for what was claimed.
    pub(super) fn spend(&mut self, attempts: usize) {
        self.tokens -= attempts as f64;
    }

    /// Puts tokens back for what was not begun.
    pub(super) fn refund(&mut self, attempts: usize) {
        self.tokens = (self.tokens + attempts as f64).min(self.size());
    }

    /// When the next claim is worth its while: at a high rate tokens are claimed some at a time.
    pub(super) fn next_at(&self) -> Instant {
        let wanted = (self.per_second / 20.0).max(1.0);
        let missing = (wanted - self.tokens).max(0.0);
        self.filled_at + Duration::from_secs_f64(missing / self.per_second)
    }

    fn size(&self) -> f64 {
        (self.per_second / 10.0).max(1.0)
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.per_second).min(self.size());
        self.filled_at = self.filled_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts begun in ten seconds by somebody who claims whenever it is worth it.
    fn in_ten_seconds(per_second: u32) -> usize {
        let start = Instant::now();
        let (mut now, mut attempts) = (start, 0);
        let mut bucket = Bucket::new(per_second.into(), start);
        while now < start + Duration::from_secs(10) {
            let some = bucket.available(now);
            bucket.spend(some);
            attempts += some;
            now = bucket.next_at() + Duration::from_micros(1);
        }
        attempts
    }

    #[test]
    fn the_rate_is_kept_and_reached() {
        for per_second in [1, 7, 100, 5000] {
            let expected = 10 * per_second as usize;
            let attempts = in_ten_seconds(per_second);
            assert!(
                attempts.abs_diff(expected) <= 1 + expected / 100,
                "{attempts} at {per_second}"
            );
        }
    }

    #[test]
    fn a_pause_is_not_followed_by_a_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(100.0, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!(bucket.available(later), 10);
        bucket.spend(10);
        assert_eq!(bucket.available(later), 0);
        bucket.refund(2);
        assert_eq!(bucket.available(later), 2);
        bucket.set_rate(5.0, later);
        assert_eq!(bucket.available(later), 1);
    }
}
