//! What a route asks for, as far as the store and the worker decide by it.

use std::time::Duration;

use crate::delivery::Claimed;
use crate::limits;

/// The rules of a route. The store keeps them beside its name, so that every node and every
/// operator command decides alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRules {
    /// How often a delivery is tried before it is dead.
    pub max_attempts: u32,
    /// The pause after the first failure; it doubles with each further one.
    pub base: Duration,
    /// The longest pause of ours.
    pub cap: Duration,
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
            max_attempts: 8,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(3600),
            longest_wait: limits::LONGEST_WAIT,
            max_snoozes: limits::SNOOZES,
            ordered: false,
            skip_stale: false,
            on_dead: OnDead::Hold,
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
        let doublings = attempts.saturating_sub(1).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }
}
