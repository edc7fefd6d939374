//! What Prometheus is told of routes and their deliveries.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use oncebox::delivery::{Next, State};
use oncebox::worker::BreakerView;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Reasons of one route that are told apart. Further ones are `other`: a consumer that puts an id
/// into its reasons must not fill the memory of whoever scrapes us.
const REASONS_MAX: usize = 20;

/// The longest reason that is told apart.
const REASON_BYTES_MAX: usize = 64;

/// The states of a breaker, in words.
const BREAKER_STATES: [&str; 5] = ["closed", "slowed", "open", "half-open", "ramping"];

/// Stands for reasons that are not told apart.
const OTHER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    route: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempted {
    route: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Opened {
    route: String,
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Repeated {
    route: String,
    reason: String,
}

/// The metrics of all routes.
#[derive(Debug)]
pub struct RouteMetrics {
    deliveries: Family<InState, Gauge>,
    oldest_seconds: Family<InState, Gauge<f64, AtomicU64>>,
    attempts: Family<Attempted, Counter>,
    attempt_seconds: Family<OfRoute, Histogram>,
    retries: Family<Repeated, Counter>,
    stale: Family<OfRoute, Counter>,
    unversioned: Family<OfRoute, Counter>,
    damaged: Family<OfRoute, Counter>,
    leases_lost: Family<OfRoute, Counter>,
    breaker_open: Family<OfRoute, Gauge>,
    breaker_state: Family<InState, Gauge>,
    breaker_openings: Family<Opened, Counter>,
    breaker_probe_seconds: Family<OfRoute, Gauge<f64, AtomicU64>>,
    outbox_pending: Gauge,
    replays: Counter,
    rescued: Counter,
    reasons: Mutex<HashMap<String, HashSet<String>>>,
    /// The routes that gauges tell of.
    told_of: Mutex<BTreeSet<String>>,
}

impl RouteMetrics {
    pub(super) fn new() -> Self {
        // From a millisecond to half a minute, which is how long a push may take.
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        Self {
            deliveries: Family::default(),
            oldest_seconds: Family::default(),
            attempts: Family::default(),
            attempt_seconds: Family::new_with_constructor(seconds),
            retries: Family::default(),
            stale: Family::default(),
            unversioned: Family::default(),
            damaged: Family::default(),
            leases_lost: Family::default(),
            breaker_open: Family::default(),
            breaker_state: Family::default(),
            breaker_openings: Family::default(),
            breaker_probe_seconds: Family::default(),
            outbox_pending: Gauge::default(),
            replays: Counter::default(),
            rescued: Counter::default(),
            reasons: Mutex::default(),
            told_of: Mutex::default(),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let deliveries = "Deliveries, by state";
        registry.register("deliveries", deliveries, self.deliveries.clone());
        let oldest = "Age of the oldest delivery in a state, since it was received";
        registry.register("oldest_seconds", oldest, self.oldest_seconds.clone());
        let attempts = "Attempts that ended, by outcome";
        registry.register("attempts", attempts, self.attempts.clone());
        let seconds = "How long attempts took";
        registry.register("attempt_seconds", seconds, self.attempt_seconds.clone());
        let retries = "Attempts that are to be repeated, by reason";
        registry.register("retries", retries, self.retries.clone());
        let stale = "Deliveries skipped because a newer one was processed";
        registry.register("stale", stale, self.stale.clone());
        let unversioned = "Deliveries tried without a version, on a route that guards objects";
        registry.register("unversioned", unversioned, self.unversioned.clone());
        let damaged = "Deliveries held because their stored body does not match its digest";
        registry.register("damaged", damaged, self.damaged.clone());
        let lost = "Attempts whose lease ran out before they ended";
        registry.register("leases_lost", lost, self.leases_lost.clone());
        let open = "Whether deliveries wait because their destination is unwell";
        registry.register("breaker_open", open, self.breaker_open.clone());
        let state = "The state of a route's breaker: 1 for the one it is in";
        registry.register("breaker_state", state, self.breaker_state.clone());
        let openings = "How often breakers opened, by cause";
        registry.register("breaker_openings", openings, self.breaker_openings.clone());
        let probe = "Seconds until an open breaker lets a delivery through to see";
        registry.register("breaker_next_probe_seconds", probe, self.breaker_probe_seconds.clone());
        let pending = "Outbox messages that are not sent yet, and not dead";
        registry.register("outbox_pending", pending, self.outbox_pending.clone());
        let replays = "Replayed deliveries that were tried";
        registry.register("replays", replays, self.replays.clone());
        let rescued = "Deliveries taken from a worker that died or hung";
        registry.register("rescued", rescued, self.rescued.clone());
    }

    /// Has everything about a route at zero from the start, so that the first one shows as an
    /// increase.
    pub fn prepare(&self, route: &str) {
        let of_route = OfRoute { route: route.to_owned() };
        for outcome in ["processed", "stale", "retry", "snooze", "dead"] {
            let _ = self.attempts.get_or_create(&Attempted { route: route.to_owned(), outcome });
        }
        let other = Repeated { route: route.to_owned(), reason: OTHER.to_owned() };
        let _ = self.retries.get_or_create(&other);
        let _ = self.attempt_seconds.get_or_create(&of_route);
        let _ = self.stale.get_or_create(&of_route);
        let _ = self.unversioned.get_or_create(&of_route);
        let _ = self.damaged.get_or_create(&of_route);
        let _ = self.leases_lost.get_or_create(&of_route);
        let _ = self.breaker_open.get_or_create(&of_route);
        for cause in ["connect", "failures"] {
            let opened = Opened { route: route.to_owned(), cause };
            let _ = self.breaker_openings.get_or_create(&opened);
        }
        self.tell_of(route);
        for state in State::ALL {
            let in_state = InState { route: route.to_owned(), state: state.as_str() };
            let _ = self.deliveries.get_or_create(&in_state);
            let _ = self.oldest_seconds.get_or_create(&in_state);
        }
    }

    /// Counts an attempt that ended.
    pub fn attempt(&self, route: &str, next: Next, took: Duration) {
        let attempted = Attempted { route: route.to_owned(), outcome: next.as_str() };
        self.attempts.get_or_create(&attempted).inc();
        let of_route = OfRoute { route: route.to_owned() };
        self.attempt_seconds.get_or_create(&of_route).observe(took.as_secs_f64());
        if next == Next::Stale {
            self.stale(route);
        }
    }

    /// Counts an attempt that is to be repeated. Reasons are words of the consumer; those that
    /// are too long, and more than a few, are counted together.
    pub fn retry(&self, route: &str, reason: &str) {
        let reason = self.told_apart(route, reason);
        let repeated = Repeated { route: route.to_owned(), reason };
        self.retries.get_or_create(&repeated).inc();
    }

    fn told_apart(&self, route: &str, reason: &str) -> String {
        let reason = reason.trim();
        if reason.is_empty() || reason.len() > REASON_BYTES_MAX {
            return OTHER.to_owned();
        }
        let mut all = self.reasons.lock().expect("no panic while counting");
        let known = all.entry(route.to_owned()).or_default();
        if known.len() < REASONS_MAX {
            known.insert(reason.to_owned());
        }
        if known.contains(reason) { reason.to_owned() } else { OTHER.to_owned() }
    }

    /// Counts a delivery skipped as stale.
    pub fn stale(&self, route: &str) {
        self.stale.get_or_create(&OfRoute { route: route.to_owned() }).inc();
    }

    /// Counts a delivery that has no version, and was tried for the first time.
    pub fn unversioned(&self, route: &str) {
        self.unversioned.get_or_create(&OfRoute { route: route.to_owned() }).inc();
    }

    /// A delivery is held, since its payload is damaged.
    pub fn damaged(&self, route: &str) {
        self.damaged.get_or_create(&OfRoute { route: route.to_owned() }).inc();
    }

    /// Counts an attempt whose lease was lost.
    pub fn lease_lost(&self, route: &str) {
        self.leases_lost.get_or_create(&OfRoute { route: route.to_owned() }).inc();
    }

    /// Counts a replayed delivery that was tried.
    pub fn replayed(&self) {
        self.replays.inc();
    }

    /// Counts deliveries taken from lost workers.
    pub fn rescued(&self, count: usize) {
        self.rescued.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    }

    fn tell_of(&self, route: &str) {
        let mut told_of = self.told_of.lock().expect("no panic while counting");
        if !told_of.contains(route) {
            told_of.insert(route.to_owned());
        }
    }

    /// Removes the gauges of routes that are not there any more, as after a rename: what they said
    /// last would look like a backlog for ever.
    pub fn forget_others(&self, is_there: impl Fn(&str) -> bool) {
        let mut told_of = self.told_of.lock().expect("no panic while counting");
        let gone: Vec<String> = told_of.iter().filter(|name| !is_there(name)).cloned().collect();
        for route in gone {
            told_of.remove(&route);
            for state in State::ALL {
                let in_state = InState { route: route.clone(), state: state.as_str() };
                self.deliveries.remove(&in_state);
                self.oldest_seconds.remove(&in_state);
            }
            for state in BREAKER_STATES {
                self.breaker_state.remove(&InState { route: route.clone(), state });
            }
            let of_route = OfRoute { route };
            self.breaker_open.remove(&of_route);
            self.breaker_probe_seconds.remove(&of_route);
        }
    }

    /// Says of every route in which state its breaker is. A route without one has it closed.
    pub fn breakers<'a>(&self, find: impl Fn(&str) -> Option<&'a BreakerView>) {
        for route in &*self.told_of.lock().expect("no panic while counting") {
            let view = find(route);
            let of_route = OfRoute { route: route.clone() };
            let open = view.is_some_and(BreakerView::is_open);
            self.breaker_open.get_or_create(&of_route).set(open.into());
            let probe = view.and_then(|view| view.next_probe).unwrap_or_default();
            self.breaker_probe_seconds.get_or_create(&of_route).set(probe.as_secs_f64());
            let current = view.map_or("closed", BreakerView::as_str);
            for state in BREAKER_STATES {
                let in_state = InState { route: route.clone(), state };
                self.breaker_state.get_or_create(&in_state).set((state == current).into());
            }
        }
    }

    /// Counts a breaker that opened.
    pub fn breaker_opened(&self, route: &str, cause: &'static str) {
        self.breaker_openings.get_or_create(&Opened { route: route.to_owned(), cause }).inc();
    }

    /// Says how many outbox messages are still to be sent.
    pub fn outbox_pending(&self, count: u64) {
        self.outbox_pending.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Says how many deliveries of a route are in a state, and how old the oldest is.
    pub fn standing(&self, route: &str, state: State, count: u64, oldest: Duration) {
        let in_state = InState { route: route.to_owned(), state: state.as_str() };
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.tell_of(route);
        self.deliveries.get_or_create(&in_state).set(count);
        self.oldest_seconds.get_or_create(&in_state).set(oldest.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_few() {
        let metrics = RouteMetrics::new();
        for number in 0..REASONS_MAX {
            let reason = format!("reason {number}");
            assert_eq!(metrics.told_apart("r", &reason), reason);
        }
        assert_eq!(metrics.told_apart("r", "one more"), OTHER);
        assert_eq!(metrics.told_apart("r", "reason 3"), "reason 3");
        assert_eq!(metrics.told_apart("s", "one more"), "one more");
        assert_eq!(metrics.told_apart("s", &"x".repeat(65)), OTHER);
        assert_eq!(metrics.told_apart("s", " "), OTHER);
    }
}
