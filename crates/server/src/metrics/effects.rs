//! What Prometheus is told of effects.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use oncebox::effect::EffectState;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What a call on an effect came to, over HTTP. The words are labels of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectCall {
    /// Begun: the caller's to do.
    Begun,
    /// Done before.
    Found,
    /// Somebody else is at it.
    Busy,
    /// Unknown, and the delivery is held for a person to say.
    Parked,
    /// Completed.
    Done,
    /// Given back undone.
    Abandoned,
    /// Said when the lease was over.
    Late,
    /// A message was written.
    Sent,
    /// A message was written before.
    Repeated,
}

impl EffectCall {
    /// Everything a call can come to.
    pub const ALL: [Self; 9] = [
        Self::Begun,
        Self::Found,
        Self::Busy,
        Self::Parked,
        Self::Done,
        Self::Abandoned,
        Self::Late,
        Self::Sent,
        Self::Repeated,
    ];

    /// Its word. Never renamed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Found => "found",
            Self::Busy => "busy",
            Self::Parked => "parked",
            Self::Done => "done",
            Self::Abandoned => "abandoned",
            Self::Late => "late",
            Self::Sent => "sent",
            Self::Repeated => "repeated",
        }
    }
}

impl EncodeLabelValue for EffectCall {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    route: String,
    outcome: EffectCall,
}

/// The metrics of the effect ledger.
#[derive(Debug)]
pub struct EffectMetrics {
    effects: Family<InState, Gauge>,
    oldest_seconds: Family<InState, Gauge<f64, AtomicU64>>,
    calls: Family<Called, Counter>,
    conflicts: Counter,
    /// How many were ever noted when that was asked last.
    conflicts_seen: Mutex<Option<u64>>,
}

impl EffectMetrics {
    /// The states that are counted. Those that are done may be very many.
    pub const STATES: [EffectState; 2] = [EffectState::Started, EffectState::Unknown];

    pub(super) fn new() -> Self {
        let metrics = Self {
            effects: Family::default(),
            oldest_seconds: Family::default(),
            calls: Family::default(),
            conflicts: Counter::default(),
            conflicts_seen: Mutex::default(),
        };
        for state in Self::STATES {
            metrics.standing(state, 0, Duration::ZERO);
        }
        metrics
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let effects = "Effects that were begun and are not done, by state";
        registry.register("effects", effects, self.effects.clone());
        let oldest = "For how long the oldest effect has been in a state";
        registry.register("effects_oldest_seconds", oldest, self.oldest_seconds.clone());
        let calls = "Calls on effects over HTTP, by what came of them";
        registry.register("effect_calls", calls, self.calls.clone());
        let conflicts = "Deliveries that found an effect done, or a message sent, by another";
        registry.register("effect_conflicts", conflicts, self.conflicts.clone());
    }

    /// Has the calls of a route at zero from the start, so that the first one shows as an
    /// increase.
    pub fn prepare(&self, route: &str) {
        for outcome in EffectCall::ALL {
            let _ = self.calls.get_or_create(&Called { route: route.to_owned(), outcome });
        }
    }

    /// Counts a call.
    pub fn call(&self, route: &str, outcome: EffectCall) {
        self.calls.get_or_create(&Called { route: route.to_owned(), outcome }).inc();
    }

    /// Says how many conflicts were ever noted, through whichever door they came. Those of before
    /// the first call are none of this counter's. A store that was restored knows of fewer.
    pub fn conflicts(&self, noted: u64) {
        let mut seen = self.conflicts_seen.lock().expect("no panic while counting");
        let before = seen.replace(noted).unwrap_or(noted);
        self.conflicts.inc_by(noted.saturating_sub(before));
    }

    /// Says how many effects are in a state, and for how long the oldest of them.
    pub fn standing(&self, state: EffectState, count: u64, oldest: Duration) {
        let in_state = InState { state: state.as_str() };
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.effects.get_or_create(&in_state).set(count);
        self.oldest_seconds.get_or_create(&in_state).set(oldest.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_only_rise() {
        let metrics = EffectMetrics::new();
        for (noted, total) in [(7, 0), (7, 0), (9, 2), (4, 2), (5, 3)] {
            metrics.conflicts(noted);
            assert_eq!(metrics.conflicts.get(), total, "{noted}");
        }
    }
}
