//! The circuit breaker of a route: a destination that is unwell is left alone, and one that comes
//! back meets no herd.
//!
//! It is about the destination, never about some events: each delivery is counted once, so an
//! event that fails whenever it is tried does not delay its neighbours.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Health;
use crate::delivery::DeliveryId;
use crate::limits::{
    BREAKER_CONNECTS, BREAKER_DELIVERIES, BREAKER_LEAST, BREAKER_MEMORY, BREAKER_PAUSE,
};
use crate::store::Pick;

/// What operators see of a breaker.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerView {
    /// What it lets through.
    pub state: BreakerState,
    /// Why it opened; none once it is closed.
    pub reason: Option<String>,
    /// How long until it lets a delivery through to see, while it is open.
    pub next_probe: Option<Duration>,
    /// Attempts per second that the route is slowed down to, since its destination asked for it.
    pub slowed_to: Option<f64>,
}

impl BreakerView {
    /// A stable word for lists and metrics.
    pub fn as_str(&self) -> &'static str {
        match self.state {
            BreakerState::Closed if self.slowed_to.is_some() => "slowed",
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half-open",
            BreakerState::Ramping(_) => "ramping",
        }
    }

    /// Whether deliveries of the route wait because its destination is unwell.
    pub fn is_open(&self) -> bool {
        matches!(self.state, BreakerState::Open | BreakerState::HalfOpen)
    }
}

/// What a breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// Nothing, until the next probe.
    Open,
    /// One delivery, to see.
    HalfOpen,
    /// This many at a time: the destination has only just come back.
    Ramping(usize),
}

/// A change of a breaker that is worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerChange {
    /// It opened: the destination cannot be connected to.
    OpenedByConnects,
    /// It opened: most deliveries ended in a time-out or 5xx.
    OpenedByFailures,
    /// The delivery that was let through to see failed; it stays open.
    ProbeFailed,
    /// The delivery that was let through to see came through.
    ProbeSucceeded,
    /// Everything goes again.
    Closed,
}

impl BreakerChange {
    /// Why it opened, as a stable word for metrics; none if it did not.
    pub fn cause(self) -> Option<&'static str> {
        match self {
            Self::OpenedByConnects => Some("connect"),
            Self::OpenedByFailures => Some("failures"),
            Self::ProbeFailed | Self::ProbeSucceeded | Self::Closed => None,
        }
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
    /// Failures to connect in a row.
    connects_failed: u32,
    /// How the last different deliveries ended, oldest first.
    recent: VecDeque<Recent>,
    pause: Duration,
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    /// Half open once the time has come.
    Open {
        until: Instant,
        /// From when on a delivery that never failed is let through. Earlier than `until` if the
        /// last probe was one that had failed before: perhaps the fault is its own.
        for_unfailed: Instant,
    },
    Ramping {
        allowed: usize,
    },
}

#[derive(Debug)]
struct Recent {
    delivery: DeliveryId,
    at: Instant,
    failed: bool,
}

/// The right to one attempt.
#[derive(Debug)]
pub(super) struct Pass {
    generation: u32,
}

/// The end of an attempt, as far as its destination is concerned.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) delivery: DeliveryId,
    /// Unknown where the attempt was cut short.
    pub(super) health: Option<Health>,
    /// Whether the delivery has failed in an earlier attempt. That it fails again is no news.
    pub(super) failed_before: bool,
    /// What went wrong, in a few words.
    pub(super) detail: &'a str,
    pub(super) at: Instant,
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self {
            state: State::Closed,
            generation: 0,
            running: 0,
            connects_failed: 0,
            recent: VecDeque::with_capacity(BREAKER_DELIVERIES + 1),
            pause: BREAKER_PAUSE.0,
            reason: None,
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

    /// Which deliveries are to be claimed.
    pub(super) fn pick(&self, now: Instant) -> Pick {
        match self.state {
            State::Closed => Pick::Due,
            State::Open { until, .. } if until > now => Pick::OnlyUnfailed,
            State::Open { .. } | State::Ramping { .. } => Pick::UnfailedFirst,
        }
    }

    /// When a breaker that lets nothing through will let an attempt through again.
    pub(super) fn opens_until(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::Open { until, for_unfailed } => {
                Some(until.min(for_unfailed)).filter(|first| *first > now)
            }
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

    /// Ends an attempt. `chance`, between 0 and 1, spreads the pauses of several workers.
    pub(super) fn end(
        &mut self,
        pass: &Pass,
        end: &End<'_>,
        concurrency: usize,
        chance: f64,
    ) -> Option<BreakerChange> {
        if pass.generation != self.generation {
            return None;
        }
        self.running -= 1;
        let health = end.health?;
        self.connects_failed = match health {
            Health::Unreachable => self.connects_failed + 1,
            Health::Well | Health::Failing | Health::Overloaded => 0,
        };
        self.note(end, health);
        match health {
            Health::Well | Health::Overloaded => self.well(concurrency),
            Health::Unreachable | Health::Failing => self.unwell(end, chance),
        }
    }

    /// Lets an attempt through at once, as when the destination was changed.
    pub(super) fn probe_now(&mut self, now: Instant) {
        if let State::Open { until, .. } = &mut self.state {
            *until = now.min(*until);
        }
    }

    /// What operators see of it.
    pub(super) fn view(&self, now: Instant) -> BreakerView {
        let (state, next_probe) = match self.state {
            State::Closed => (BreakerState::Closed, None),
            State::Open { until, .. } if until > now => (BreakerState::Open, Some(until - now)),
            State::Open { .. } => (BreakerState::HalfOpen, None),
            State::Ramping { allowed } => (BreakerState::Ramping(allowed), None),
        };
        BreakerView { state, reason: self.reason.clone(), next_probe, slowed_to: None }
    }

    fn limit(&self, now: Instant, concurrency: usize) -> usize {
        match self.state {
            State::Closed => concurrency,
            State::Open { .. } => usize::from(self.opens_until(now).is_none()),
            State::Ramping { allowed } => allowed.min(concurrency),
        }
    }

    /// Remembers how a delivery ended. That one fails which has failed before tells of the event
    /// as much as of the destination, and is not counted again; that it cannot be connected to
    /// tells of the destination alone.
    fn note(&mut self, end: &End<'_>, health: Health) {
        let failed = matches!(health, Health::Unreachable | Health::Failing);
        if !(health == Health::Failing && end.failed_before) {
            self.recent.retain(|recent| recent.delivery != end.delivery);
            self.recent.push_back(Recent { delivery: end.delivery, at: end.at, failed });
        }
        let is_old = |recent: &Recent| end.at.duration_since(recent.at) > BREAKER_MEMORY;
        while self.recent.len() > BREAKER_DELIVERIES || self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
    }

    fn well(&mut self, concurrency: usize) -> Option<BreakerChange> {
        self.pause = BREAKER_PAUSE.0;
        let (allowed, change) = match self.state {
            State::Closed => return None,
            State::Open { .. } => (1, Some(BreakerChange::ProbeSucceeded)),
            State::Ramping { allowed } => (allowed.saturating_mul(2), None),
        };
        if allowed < concurrency {
            self.state = State::Ramping { allowed };
            return change;
        }
        self.state = State::Closed;
        self.reason = None;
        Some(BreakerChange::Closed)
    }

    fn unwell(&mut self, end: &End<'_>, chance: f64) -> Option<BreakerChange> {
        if let State::Open { .. } = self.state {
            let for_unfailed = end.failed_before.then_some(BREAKER_PAUSE.0);
            self.open(end.at, for_unfailed, chance);
            return Some(BreakerChange::ProbeFailed);
        }
        let all = self.recent.len();
        let failed = self.recent.iter().filter(|recent| recent.failed).count();
        let (reason, change) = if self.connects_failed >= BREAKER_CONNECTS {
            let reason = format!("{} connections failed in a row", self.connects_failed);
            (reason, BreakerChange::OpenedByConnects)
        } else if all >= BREAKER_LEAST && 2 * failed > all {
            let reason = format!("{failed} of the last {all} deliveries failed");
            (reason, BreakerChange::OpenedByFailures)
        } else {
            if let State::Ramping { allowed } = &mut self.state {
                *allowed = (*allowed / 2).max(1);
            }
            return None;
        };
        self.reason = Some(match end.detail {
            "" => reason,
            detail => format!("{reason} ({detail})"),
        });
        self.open(end.at, None, chance);
        Some(change)
    }

    fn open(&mut self, now: Instant, for_unfailed: Option<Duration>, chance: f64) {
        let jittered = |pause: Duration| pause.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        let until = now + jittered(self.pause);
        let for_unfailed = for_unfailed.map_or(until, |pause| now + jittered(pause));
        self.state = State::Open { until, for_unfailed };
        self.pause = self.pause.saturating_mul(2).min(BREAKER_PAUSE.1);
        self.generation = self.generation.wrapping_add(1);
        self.running = 0;
        self.connects_failed = 0;
        self.recent.clear();
    }
}

#[cfg(test)]
#[path = "breaker/tests.rs"]
mod tests;
