//! Breakers as they are reported: to the log, to the worker's observer, and to the store, where
//! operators find which ones are not closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tracing::{info, warn};

use super::breaker::BreakerChange;
use super::slots::AfterEnd;
use super::{Shared, WorkRoute};
use crate::limits::{BREAKERS_TOLD, STOP_FINISH};
use crate::route::in_words;
use crate::store::{BreakerNote, StoreError};

/// Says what the end of an attempt did to the breaker and the rate of its route.
pub(super) fn note(shared: &Shared, route: &WorkRoute, after: &AfterEnd) {
    let name = &*route.name;
    if let Some(per_second) = after.slowed {
        warn!(
            route = name,
            per_second, "slowed route {name} to {per_second:.1} attempts a second: answered 429"
        );
        shared.breakers_changed.notify_one();
    }
    let Some(change) = after.change else { return };
    let reason = after.view.reason.as_deref().unwrap_or_default();
    let pause = after.view.next_probe.unwrap_or_default();
    let (probe_ms, pause) = (pause.as_millis(), in_words(pause));
    match change {
        BreakerChange::OpenedByConnects | BreakerChange::OpenedByFailures => warn!(
            route = name,
            reason, probe_ms, "breaker opened for route {name}: {reason}; next probe in {pause}"
        ),
        BreakerChange::ProbeFailed => info!(
            route = name,
            reason, probe_ms, "probe failed for route {name}; next probe in {pause}"
        ),
        BreakerChange::ProbeSucceeded => {
            info!(route = name, "probe succeeded for route {name}; its deliveries go on by and by");
        }
        BreakerChange::Closed => info!(route = name, "breaker closed for route {name}"),
    }
    shared.options.observer.breaker(name, change);
    shared.breakers_changed.notify_one();
}

/// Keeps the store informed until the worker stops. While all breakers are closed it writes
/// nothing.
pub(super) async fn run(shared: Arc<Shared>) {
    while !shared.is_stopping() {
        let told = shared.breakers_told.load(Ordering::Relaxed);
        tokio::select! {
            () = shared.breakers_changed.notified() => {}
            () = shared.pause(BREAKERS_TOLD), if told => {}
            () = shared.stopped() => return,
        }
        if let Err(error) = tell(&shared).await {
            warn!(%error, "cannot tell the store about breakers; trying again");
        }
    }
}

/// Tells the store which breakers are not closed.
pub(super) async fn tell(shared: &Shared) -> Result<(), StoreError> {
    let breakers = shared.slots().breakers(Instant::now());
    let unwell = breakers.into_iter().filter(|(_, view)| view.as_str() != "closed");
    let notes: Vec<BreakerNote> = unwell
        .map(|(route, view)| BreakerNote {
            route: route.number,
            state: view.as_str(),
            reason: match (view.reason, view.slowed_to) {
                (Some(reason), _) => reason,
                (None, Some(rate)) => format!("answered 429; {rate:.1} attempts a second"),
                (None, None) => String::new(),
            },
            next_probe: view.next_probe,
        })
        .collect();
    // Until the store has answered, it may know of any.
    shared.breakers_told.store(true, Ordering::Relaxed);
    shared.store.tell_breakers(&shared.options.name, &notes).await?;
    shared.breakers_told.store(!notes.is_empty(), Ordering::Relaxed);
    Ok(())
}

/// Has the store forget the breakers of a worker that stops.
pub(super) async fn forget(shared: &Shared) {
    if !shared.breakers_told.load(Ordering::Relaxed) {
        return;
    }
    let forgetting = shared.store.tell_breakers(&shared.options.name, &[]);
    match tokio::time::timeout(STOP_FINISH, forgetting).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "cannot tell the store that breakers are gone"),
        Err(_) => warn!("cannot tell the store in time that breakers are gone"),
    }
}
