//! Chance with a seed: what happened by it can happen again.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Repeats a run.
const SEED: &str = "ONCEBOX_TEST_SEED";

/// Runs every loop in full.
const FULL: &str = "ONCEBOX_TEST_FULL";

/// `full` rounds in the full suite, else `quick`.
pub(crate) fn rounds(quick: usize, full: usize) -> usize {
    if std::env::var(FULL).is_ok_and(|value| value == "1") { full } else { quick }
}

/// The splitmix64 generator.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// From the environment, or new; printed, so that a failing test tells it.
    pub(crate) fn new() -> Self {
        let given = std::env::var(SEED).ok().map(|text| text.parse().expect("a seed is a number"));
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0) >> 16);
        println!("{SEED}={seed}");
        Self(seed)
    }

    /// A generator for somebody else, who may run beside us.
    pub(crate) fn branch(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).expect("fits")).expect("fits")
    }

    pub(crate) fn between(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.end - range.start)
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Goes on at a moment nobody can foresee, some tens of microseconds to milliseconds later.
    pub(crate) fn spin(&mut self) {
        for _ in 0..1 << self.below(20) {
            std::hint::spin_loop();
        }
    }
}
