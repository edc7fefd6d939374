//! What a route asks for, as far as the store and the worker decide by it.

use std::time::Duration;

use crate::delivery::Claimed;
use crate::limits;

mod schedule;

pub use schedule::{Schedule, in_words};

/// The rules of a route. The store keeps them beside its name, so that every node and every
/// operator command decides alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRules {
    /// How often a delivery is tried before it is dead.
    pub max_attempts: u32,
    /// The pause after the first failure; each further one is four times as long.
    pub base: Duration,
    /// The longest pause of ours.
    pub cap: Duration,
    /// For how long a delivery is tried, by [`Counts::tried`](crate::delivery::Counts::tried).
    pub budget: Option<Duration>,
    /// The longest pause a consumer may ask for.
    pub longest_wait: Duration,
    /// How often a delivery may be snoozed.
    pub max_snoozes: u32,
    /// Whether events about one object go one at a time, oldest first.
    pub ordered: bool,
    /// Whether events older than what was processed of their object are skipped.
    pub skip_stale: bool,
    /// What a dead delivery does to those behind it.
    pub on_dead: OnDead,
    /// For how long a delivery that keeps failing holds up those behind it, where a dead one would
    /// not.
    pub hold_for: Duration,
    /// How far apart two events of the same operation may be received.
    pub same_operation: Option<Duration>,
    /// Whether workers elsewhere take from it. If not, one in the server pushes what it has.
    pub pulled: bool,
}

/// What a dead delivery does to those behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDead {
    /// They wait until it is replayed or discarded.
    #[default]
    Hold,
    /// They go on.
    Continue,
}

impl Default for RouteRules {
    fn default() -> Self {
        Self {
            max_attempts: limits::RETRY_ATTEMPTS,
            base: limits::RETRY_PAUSE.0,
            cap: limits::RETRY_PAUSE.1,
            budget: None,
            longest_wait: limits::LONGEST_WAIT,
            max_snoozes: limits::SNOOZES,
            ordered: false,
            skip_stale: false,
            on_dead: OnDead::Hold,
            hold_for: limits::HOLD_FOR,
            same_operation: None,
            pulled: true,
        }
    }
}

impl RouteRules {
    /// The same rules for a route that carries outbox messages: those of a group go one at a time,
    /// in their order, and the server pushes them. None of them is stale, or like another.
    pub fn for_outbox(self) -> Self {
        let (skip_stale, same_operation) = (false, None);
        Self { ordered: true, pulled: false, skip_stale, same_operation, ..self }
    }

    /// Whether claims on this route have to look at other deliveries.
    pub fn is_guarded(&self) -> bool {
        self.needs_lanes() || self.same_operation.is_some()
    }

    /// Whether deliveries of this route are told apart by object.
    pub fn needs_lanes(&self) -> bool {
        self.ordered || self.skip_stale
    }

    /// Whether a delivery that is tried for the first time has an object that this route guards,
    /// and no version to go by.
    pub fn misses_version(&self, claimed: &Claimed) -> bool {
        let is_guarded = self.needs_lanes() && claimed.object.is_some();
        is_guarded && claimed.version.is_none() && claimed.counts.attempts == 1
    }

    /// The longest pause after that many attempts that counted.
    pub(crate) fn pause(&self, attempts: u32) -> Duration {
        let times = attempts.saturating_sub(1).min(15);
        self.base.saturating_mul(4_u32.pow(times)).min(self.cap)
    }

    /// The pause after that many attempts that counted, drawn by `chance` between half and all of
    /// the longest. The last attempt within the budget is made when the budget ends.
    pub(crate) fn jittered_pause(&self, attempts: u32, tried: Duration, chance: f64) -> Duration {
        let pause = self.pause(attempts).mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        let left = self.budget.and_then(|budget| budget.checked_sub(tried));
        match left.filter(|left| attempts + 1 >= limits::BUDGET_ATTEMPTS && !left.is_zero()) {
            Some(left) => pause.min(left),
            None => pause,
        }
    }

    /// Whether no further attempt follows that many that counted.
    pub(crate) fn is_spent(&self, attempts: u32, tried: Duration) -> bool {
        let is_over = self.budget.is_some_and(|budget| tried >= budget);
        attempts >= self.max_attempts || is_over && attempts >= limits::BUDGET_ATTEMPTS
    }

    /// For how long a failing delivery holds up its followers. `None`: until it ends.
    pub(crate) fn holds_followers_for(&self) -> Option<Duration> {
        (self.on_dead == OnDead::Continue).then_some(self.hold_for)
    }

    /// When a delivery that keeps failing is tried again, and for how long.
    pub fn schedule(&self) -> Schedule {
        Schedule::of(self)
    }

    /// As many attempts as fit into a budget, however short the pauses turn out to be.
    pub fn attempts_within(base: Duration, cap: Duration, budget: Duration) -> u32 {
        let max_attempts = limits::RETRY_ATTEMPTS_MAX;
        let rules = Self { max_attempts, base, cap, budget: Some(budget), ..Self::default() };
        rules.play(0.0).0
    }

    /// Fails until the attempts or the budget are spent. Returns how many attempts that took, and
    /// how long.
    fn play(&self, chance: f64) -> (u32, Duration) {
        let (mut attempts, mut tried) = (1, Duration::ZERO);
        while !self.is_spent(attempts, tried) {
            tried = tried.saturating_add(self.jittered_pause(attempts, tried, chance));
            attempts += 1;
        }
        (attempts, tried)
    }
}
