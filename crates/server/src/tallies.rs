//! How many deliveries and effects are in each state, for metrics.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use oncebox::delivery::State;
use oncebox::effect::OUTBOX;
use oncebox::store::{RouteView, StoreError, Tally};
use tokio::sync::Mutex;
use tracing::warn;

use crate::metrics::EffectMetrics;
use crate::state::Inbox;

/// How often deliveries are counted.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// A count this old is as good as a new one.
const FRESH: Duration = Duration::from_secs(5);

/// Counting may take one part in so many of the time: over a large backlog it is done less often.
const SHARE: u32 = 20;

/// How long counting may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// When deliveries were counted last.
#[derive(Debug, Default)]
pub struct Tallies {
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    /// Until when the last count is good enough.
    fresh_until: Option<Instant>,
}

impl Tallies {
    /// Sees how many conflicts there are before the first call: those that come are counted from
    /// there.
    pub(crate) async fn begin(&self, inbox: &Inbox) {
        // Should it fail or take too long, the first count that does not is where it begins.
        let _ = tokio::time::timeout(PATIENCE, count_conflicts(inbox)).await;
    }

    /// Counts, unless that was done just now. Whoever comes while somebody counts waits for it.
    pub(crate) async fn refresh(&self, inbox: &Inbox) {
        let mut last = self.last.lock().await;
        let began = Instant::now();
        if last.fresh_until.is_some_and(|until| began < until) {
            return;
        }
        show_breakers(inbox);
        last.fresh_until = Some(in_time(inbox).await.max(began + FRESH));
    }
}

/// Counts if that does not take too long. Returns until when not to do so again.
async fn in_time(inbox: &Inbox) -> Instant {
    let began = Instant::now();
    match tokio::time::timeout(PATIENCE, count(inbox)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "deliveries and effects could not be counted"),
        Err(_) => warn!("deliveries and effects could not be counted in time"),
    }
    let ended = Instant::now();
    ended + (ended - began) * SHARE
}

/// Counts deliveries and effects.
async fn count(inbox: &Inbox) -> Result<(), StoreError> {
    let routes = inbox.store.routes().await?;
    let tallies = inbox.store.tally().await?;
    let live = inbox.live();
    let now = inbox.clock.now();
    for route in &routes {
        let waits = route.paused_at.is_some() || !live.has_route(route.route);
        let standing = standing(route, waits, &tallies);
        for state in State::ALL {
            let (count, oldest) = standing.get(&state).copied().unwrap_or_default();
            let age = oldest.map_or(Duration::ZERO, |oldest| age(oldest, now));
            inbox.metrics.routes.standing(&route.name, state, count, age);
        }
    }
    inbox.metrics.routes.forget_others(|name| routes.iter().any(|route| route.name == name));
    inbox.metrics.routes.outbox_pending(pending(&routes, &tallies));
    count_conflicts(inbox).await?;
    count_effects(inbox).await
}

/// How many outbox messages are still to be sent. Those that are dead wait for a person.
fn pending(routes: &[RouteView], tallies: &[Tally]) -> u64 {
    let carries = |tally: &&Tally| {
        let route = routes.iter().find(|route| route.route == tally.route);
        route.is_some_and(|route| route.name.starts_with(OUTBOX))
    };
    let is_open = |tally: &&Tally| !tally.state.is_finished() && tally.state != State::Dead;
    tallies.iter().filter(carries).filter(is_open).map(|tally| tally.count).sum()
}

/// Counts effects that were begun and are not done.
async fn count_effects(inbox: &Inbox) -> Result<(), StoreError> {
    let tallies = inbox.store.tally_effects().await?;
    let now = inbox.clock.now();
    for state in EffectMetrics::STATES {
        let tally = tallies.iter().find(|tally| tally.state == state);
        let oldest = tally.and_then(|tally| tally.oldest);
        let age = oldest.map_or(Duration::ZERO, |oldest| age(oldest, now));
        inbox.metrics.effects.standing(state, tally.map_or(0, |tally| tally.count), age);
    }
    Ok(())
}

/// Counts deliveries that found an effect done by another, through whichever door they came.
async fn count_conflicts(inbox: &Inbox) -> Result<(), StoreError> {
    inbox.metrics.effects.conflicts(inbox.store.count_conflicts().await?);
    Ok(())
}

/// Says in which state breakers are. A route that is pulled, or not configured any more, has none.
fn show_breakers(inbox: &Inbox) {
    let Some(worker) = &inbox.worker else { return };
    let breakers = worker.breakers();
    inbox.metrics.routes.breakers(|route| {
        breakers.iter().find(|(name, _)| **name == *route).map(|(_, breaker)| breaker)
    });
}

/// What a route has in each state. On a route that is paused, or that nobody configures, what
/// would be due is held.
fn standing(
    route: &RouteView,
    waits: bool,
    tallies: &[Tally],
) -> BTreeMap<State, (u64, Option<Timestamp>)> {
    let mut standing: BTreeMap<State, (u64, Option<Timestamp>)> = BTreeMap::new();
    for tally in tallies.iter().filter(|tally| tally.route == route.route) {
        let state = match tally.state {
            State::Received | State::Retrying if waits => State::Held,
            state => state,
        };
        let (count, oldest) = standing.entry(state).or_default();
        *count += tally.count;
        *oldest = (*oldest).into_iter().chain(tally.oldest).min();
    }
    standing
}

fn age(oldest: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(oldest)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use oncebox::delivery::Reason;
    use oncebox::receipt::RouteNo;
    use oncebox::route::RouteRules;

    use super::*;

    fn tally(state: State, count: u64, second: i64) -> Tally {
        let reason = (state == State::Held).then_some(Reason::Order);
        let oldest = Timestamp::from_second(second).ok();
        Tally { route: RouteNo(1), state, reason, count, oldest }
    }

    #[test]
    fn what_waits_for_an_operator_is_held() {
        let route = RouteView {
            route: RouteNo(1),
            name: "r".into(),
            born_as: "r".into(),
            rules: RouteRules::default(),
            paused_at: None,
            filling: false,
        };
        let tallies = [
            tally(State::Received, 3, 50),
            tally(State::Retrying, 2, 40),
            tally(State::Held, 1, 60),
            tally(State::Dead, 4, 10),
        ];
        let at = |second| Timestamp::from_second(second).ok();
        let running = standing(&route, false, &tallies);
        assert_eq!(running[&State::Received], (3, at(50)));
        let paused = standing(&route, true, &tallies);
        assert_eq!(paused[&State::Held], (6, at(40)));
        assert_eq!(paused[&State::Dead], (4, at(10)));
        assert_eq!(paused.get(&State::Received), None);
    }
}
