//! How many deliveries are in each state, for metrics.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use oncebox::delivery::State;
use oncebox::store::{RouteView, StoreError, Tally};
use tokio::sync::Mutex;
use tracing::warn;

use crate::state::Inbox;

/// How often deliveries are counted.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// A count this old is as good as a new one.
const FRESH: Duration = Duration::from_secs(5);

/// Counting may take one part in so many of the time: over a large backlog it is done less often.
const SHARE: u32 = 20;

/// How often those that were processed are counted, too. There may be very many.
const PROCESSED: Duration = Duration::from_secs(60);

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
    processed: Option<Instant>,
}

impl Tallies {
    /// Counts, unless that was done just now. Whoever comes while somebody counts waits for it.
    pub(crate) async fn refresh(&self, inbox: &Inbox) {
        let mut last = self.last.lock().await;
        let began = Instant::now();
        if last.fresh_until.is_some_and(|until| began < until) {
            return;
        }
        if let Some(worker) = &inbox.worker {
            for (route, breaker) in worker.breakers() {
                inbox.metrics.routes.breaker(&route, breaker.is_open());
            }
        }
        let processed = last.processed.is_none_or(|at| at.elapsed() >= PROCESSED);
        match tokio::time::timeout(PATIENCE, count(inbox, processed)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "deliveries could not be counted"),
            Err(_) => warn!("deliveries could not be counted in time"),
        }
        let ended = Instant::now();
        last.fresh_until = Some(ended + FRESH.max((ended - began) * SHARE));
        if processed {
            last.processed = Some(ended);
        }
    }
}

async fn count(inbox: &Inbox, processed: bool) -> Result<(), StoreError> {
    let routes = inbox.store.routes().await?;
    let tallies = inbox.store.tally(processed).await?;
    let live = inbox.live();
    let now = inbox.clock.now();
    for route in &routes {
        let waits = route.paused_at.is_some() || live.routes.of_number(route.route).is_none();
        let standing = standing(route, waits, &tallies);
        let shown = State::ALL.into_iter().filter(|state| processed || *state != State::Processed);
        for state in shown {
            let (count, oldest) = standing.get(&state).copied().unwrap_or_default();
            let age = oldest.map_or(Duration::ZERO, |oldest| age(oldest, now));
            inbox.metrics.routes.standing(&route.name, state, count, age);
        }
    }
    Ok(())
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
            rules: RouteRules::default(),
            paused_at: None,
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
