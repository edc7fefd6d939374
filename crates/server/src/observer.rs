//! What the worker does, told to metrics, logs and those who wait for an outcome.

use std::sync::Arc;
use std::time::Duration;

use oncebox::delivery::{Claimed, DeliveryId, Next, Reason};
use oncebox::store::Rescued;
use oncebox::worker::{BreakerChange, Observer, Report};

use crate::activity::Activity;
use crate::awaited::Awaited;
use crate::line::Line;
use crate::logs::{self, Attempt};
use crate::metrics::Metrics;

/// Tells everybody.
pub(crate) struct Teller {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) awaited: Arc<Awaited>,
    pub(crate) activity: Arc<Activity>,
}

impl Observer for Teller {
    fn attempted(
        &self,
        route: &str,
        claimed: &Claimed,
        next: Next,
        report: &Report,
        took: Duration,
    ) {
        self.metrics.routes.attempt(route, next, took);
        if claimed.replays > 0 && claimed.counts.attempts == 1 {
            self.metrics.routes.replayed();
        }
        self.awaited.wake(claimed.delivery.receipt);
        let attempt = Attempt { route, claimed, next, report, took };
        logs::attempt(&attempt);
        self.activity.show(|| Line::attempted(&attempt));
    }

    fn unversioned(&self, route: &str, _: &Claimed) {
        self.metrics.routes.unversioned(route);
    }

    fn lease_lost(&self, route: &str, _: &Claimed) {
        self.metrics.routes.lease_lost(route);
    }

    fn parked(&self, route: &str, claimed: &Claimed) {
        self.awaited.wake(claimed.delivery.receipt);
        self.activity.show(|| Line::held(route, claimed, Reason::UnknownEffect));
    }

    fn damaged(&self, route: &str, claimed: &Claimed) {
        self.metrics.routes.damaged(route);
        self.awaited.wake(claimed.delivery.receipt);
        self.activity.show(|| Line::held(route, claimed, Reason::Damaged));
    }

    fn skipped(&self, route: &str, delivery: DeliveryId, reason: Reason) {
        if reason == Reason::Stale {
            self.metrics.routes.stale(route);
        }
        self.awaited.wake(delivery.receipt);
        logs::skipped(route, delivery, reason);
        self.activity.show(|| Line::skipped(route, delivery.receipt, reason));
    }

    fn breaker(&self, route: &str, change: BreakerChange) {
        if let Some(cause) = change.cause() {
            self.metrics.routes.breaker_opened(route, cause);
        }
    }

    fn rescued(&self, rescued: &Rescued) {
        self.metrics.routes.rescued(rescued.retrying.len() + rescued.dead.len());
        for delivery in rescued.retrying.iter().chain(&rescued.dead) {
            self.awaited.wake(delivery.receipt);
        }
        for delivery in &rescued.dead {
            let line = || Line::lost(self.activity.route_name(delivery.route), delivery.receipt);
            self.activity.show(line);
        }
    }
}
