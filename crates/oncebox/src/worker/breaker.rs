//! The circuit breaker of a route: a destination that is unwell is left alone, and one that comes
//! back meets no herd.

use std::time::{Duration, Instant};

use crate::limits::{BREAKER_FAILURES, BREAKER_PAUSE};

/// What a breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerView {
    /// Everything.
    Closed,
    /// Nothing, for this long.
    Open(Duration),
    /// One delivery, to see.
    HalfOpen,
    /// This many at a time: the destination has only just come back.
    Ramping(usize),
}

impl BreakerView {
    /// A stable word for lists and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open(_) => "open",
            Self::HalfOpen => "half-open",
            Self::Ramping(_) => "ramping",
        }
    }

    /// Whether deliveries of the route wait because its destination is unwell.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open(_) | Self::HalfOpen)
    }
}

/// A breaker. It reads no clock and rolls no dice.
#[derive(Debug)]
pub(super) struct Breaker {
    state: State,
    /// Counts openings. What began before the last one says nothing about how things are now.
    generation: u32,
    /// Attempts of this generation that have not ended.
    running: usize,
    unhealthy_in_a_row: u32,
    pause: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    /// Half open once the time has come.
    Open {
        until: Instant,
    },
    Ramping {
        allowed: usize,
    },
}

/// The right to one attempt.
#[derive(Debug)]
pub(super) struct Pass {
    generation: u32,
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self {
            state: State::Closed,
            generation: 0,
            running: 0,
            unhealthy_in_a_row: 0,
            pause: BREAKER_PAUSE.0,
        }
    }

    /// How many more attempts may begin, of a route with that concurrency.
    pub(super) fn room(&self, now: Instant, concurrency: usize) -> usize {
        self.limit(now, concurrency).saturating_sub(self.running)
    }

    /// Whether nothing is wrong.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// When an open breaker lets an attempt through again.
    pub(super) fn opens_until(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::Open { until } if until > now => Some(until),
            _ => None,
        }
    }

    /// Begins an attempt, if one may.
    pub(super) fn begin(&mut self, now: Instant, concurrency: usize) -> Option<Pass> {
        if self.room(now, concurrency) == 0 {
            return None;
        }
        self.running += 1;
        Some(Pass { generation: self.generation })
    }

    /// Ends an attempt. `healthy` is unknown where it was cut short. `chance`, between 0 and 1,
    /// spreads the pauses of several workers.
    pub(super) fn end(
        &mut self,
        pass: &Pass,
        healthy: Option<bool>,
        now: Instant,
        concurrency: usize,
        chance: f64,
    ) {
        if pass.generation != self.generation {
            return;
        }
        self.running -= 1;
        match healthy {
            Some(true) => self.well(concurrency),
            Some(false) => self.unwell(now, chance),
            None => {}
        }
    }

    /// Lets an attempt through at once, as when the destination was changed.
    pub(super) fn probe_now(&mut self, now: Instant) {
        if let State::Open { until } = &mut self.state {
            *until = now.min(*until);
        }
    }

    /// What operators see of it.
    pub(super) fn view(&self, now: Instant) -> BreakerView {
        match self.state {
            State::Closed => BreakerView::Closed,
            State::Open { until } if until > now => BreakerView::Open(until - now),
            State::Open { .. } => BreakerView::HalfOpen,
            State::Ramping { allowed } => BreakerView::Ramping(allowed),
        }
    }

    fn limit(&self, now: Instant, concurrency: usize) -> usize {
        match self.state {
            State::Closed => concurrency,
            State::Open { until } if until > now => 0,
            State::Open { .. } => 1,
            State::Ramping { allowed } => allowed.min(concurrency),
        }
    }

    fn well(&mut self, concurrency: usize) {
        self.unhealthy_in_a_row = 0;
        let allowed = match self.state {
            State::Closed => return,
            State::Open { .. } => 1,
            State::Ramping { allowed } => allowed.saturating_mul(2),
        };
        if allowed < concurrency {
            self.state = State::Ramping { allowed };
        } else {
            self.state = State::Closed;
            self.pause = BREAKER_PAUSE.0;
        }
    }

    fn unwell(&mut self, now: Instant, chance: f64) {
        self.unhealthy_in_a_row += 1;
        if self.is_closed() && self.unhealthy_in_a_row < BREAKER_FAILURES {
            return;
        }
        let jittered = self.pause.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        self.state = State::Open { until: now + jittered };
        self.pause = self.pause.saturating_mul(2).min(BREAKER_PAUSE.1);
        self.generation = self.generation.wrapping_add(1);
        self.running = 0;
        self.unhealthy_in_a_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// One attempt after the other, with a concurrency of eight and no jitter.
    fn attempt(breaker: &mut Breaker, now: Instant, healthy: bool) {
        let pass = breaker.begin(now, 8).expect("an attempt may begin");
        breaker.end(&pass, Some(healthy), now, 8, 1.0);
    }

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::new();
        for _ in 0..BREAKER_FAILURES {
            attempt(&mut breaker, now, false);
        }
        breaker
    }

    #[test]
    fn only_failures_in_a_row_open_it() {
        let now = Instant::now();
        let mut breaker = Breaker::new();
        for _ in 0..3 {
            for _ in 1..BREAKER_FAILURES {
                attempt(&mut breaker, now, false);
            }
            attempt(&mut breaker, now, true);
        }
        assert_eq!(breaker.view(now), BreakerView::Closed);
        let breaker = opened(now);
        assert_eq!(breaker.view(now), BreakerView::Open(SECOND));
        assert_eq!(breaker.room(now, 8), 0);
        assert_eq!(breaker.opens_until(now), Some(now + SECOND));
    }

    #[test]
    fn one_probe_decides_and_the_pauses_grow_to_a_minute() {
        let mut now = Instant::now();
        let mut breaker = opened(now);
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(breaker.view(now), BreakerView::Open(pause * SECOND));
            now += pause * SECOND;
            assert_eq!(breaker.view(now), BreakerView::HalfOpen);
            let probe = breaker.begin(now, 8).expect("one probe");
            assert!(breaker.begin(now, 8).is_none(), "a second probe");
            breaker.end(&probe, Some(false), now, 8, 1.0);
        }
    }

    #[test]
    fn a_destination_that_comes_back_is_ramped_up() {
        let mut now = Instant::now();
        let mut breaker = opened(now);
        now += SECOND;
        attempt(&mut breaker, now, true);
        for allowed in [1, 2, 4] {
            assert_eq!(breaker.view(now), BreakerView::Ramping(allowed));
            assert_eq!(breaker.room(now, 8), allowed);
            attempt(&mut breaker, now, true);
        }
        assert_eq!((breaker.view(now), breaker.room(now, 8)), (BreakerView::Closed, 8));
        // It starts again from the shortest pause.
        for _ in 0..BREAKER_FAILURES {
            attempt(&mut breaker, now, false);
        }
        assert_eq!(breaker.view(now), BreakerView::Open(SECOND));
    }

    #[test]
    fn a_failure_on_the_ramp_opens_it_again() {
        let mut now = Instant::now();
        let mut breaker = opened(now);
        now += SECOND;
        attempt(&mut breaker, now, true);
        attempt(&mut breaker, now, false);
        assert_eq!(breaker.view(now), BreakerView::Open(2 * SECOND));
    }

    #[test]
    fn what_began_before_it_opened_decides_nothing() {
        let mut now = Instant::now();
        let mut breaker = Breaker::new();
        let old = [breaker.begin(now, 8).unwrap(), breaker.begin(now, 8).unwrap()];
        for _ in 0..BREAKER_FAILURES {
            attempt(&mut breaker, now, false);
        }
        breaker.end(&old[0], Some(true), now, 8, 1.0);
        assert_eq!(breaker.view(now), BreakerView::Open(SECOND));
        now += SECOND;
        breaker.end(&old[1], Some(false), now, 8, 1.0);
        assert_eq!((breaker.view(now), breaker.room(now, 8)), (BreakerView::HalfOpen, 1));
    }

    #[test]
    fn a_probe_that_was_cut_short_is_made_again() {
        let mut now = Instant::now();
        let mut breaker = opened(now);
        now += SECOND;
        let probe = breaker.begin(now, 8).unwrap();
        assert_eq!(breaker.room(now, 8), 0);
        breaker.end(&probe, None, now, 8, 1.0);
        assert_eq!((breaker.view(now), breaker.room(now, 8)), (BreakerView::HalfOpen, 1));
    }

    #[test]
    fn chance_shortens_the_pause_by_up_to_half() {
        let now = Instant::now();
        let mut breaker = Breaker::new();
        for _ in 0..BREAKER_FAILURES {
            let pass = breaker.begin(now, 8).unwrap();
            breaker.end(&pass, Some(false), now, 8, 0.0);
        }
        assert_eq!(breaker.view(now), BreakerView::Open(SECOND / 2));
        breaker.probe_now(now);
        assert_eq!(breaker.view(now), BreakerView::HalfOpen);
    }
}
