//! When what this worker put off is due again. Without it retries would be found by the next look
//! at the store, and come back in step although their pauses are random.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::time::Instant;

use crate::limits::RETRIES_REMEMBERED;

/// The times, soonest first. What does not fit is found by looking, a little later.
#[derive(Default)]
pub(super) struct Later(Mutex<BinaryHeap<Reverse<Instant>>>);

impl Later {
    pub(super) fn note(&self, at: Instant) {
        let mut times = self.0.lock().expect("no panic while noting");
        if times.len() < RETRIES_REMEMBERED {
            times.push(Reverse(at));
        }
    }

    /// The next time after `now`; what has come is forgotten.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let mut times = self.0.lock().expect("no panic while noting");
        while times.peek().is_some_and(|Reverse(at)| *at <= now) {
            times.pop();
        }
        times.peek().map(|Reverse(at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_soonest_time_to_come_is_told() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let later = Later::default();
        assert_eq!(later.next(now), None);
        [3, 1, 2].into_iter().for_each(|seconds| later.note(at(seconds)));
        assert_eq!(later.next(now), Some(at(1)));
        assert_eq!(later.next(at(2)), Some(at(3)));
        assert_eq!(later.next(at(3)), None);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let (later, now) = (Later::default(), Instant::now());
        (0..RETRIES_REMEMBERED + 10).for_each(|_| later.note(now + Duration::from_secs(1)));
        assert_eq!(later.0.lock().unwrap().len(), RETRIES_REMEMBERED);
    }
}
