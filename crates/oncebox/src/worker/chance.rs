//! Jitter and back-off.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use crate::limits::WORKER_RETRY;

/// A number from 0 up to 1. It spreads retries and need not be hard to guess; every new
/// `RandomState` has keys of its own.
pub fn chance() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// Pauses that grow while a store does not answer.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(WORKER_RETRY.0)
    }

    /// The next pause: between half and all of what it may be.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.0.mul_f64(0.5 + chance() / 2.0);
        self.0 = (self.0 * 2).min(WORKER_RETRY.1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_spread() {
        let mut chances: Vec<f64> = (0..1000).map(|_| chance()).collect();
        chances.sort_by(f64::total_cmp);
        assert!(chances[0] >= 0.0 && chances[999] < 1.0);
        assert!((0.4..0.6).contains(&chances[500]), "the median is {}", chances[500]);
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut backoff = Backoff::new();
        assert!(backoff.pause() <= WORKER_RETRY.0);
        let last = (0..20).map(|_| backoff.pause()).last().unwrap();
        assert!(last <= WORKER_RETRY.1 && last >= WORKER_RETRY.1 / 2);
    }
}
