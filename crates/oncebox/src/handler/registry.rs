//! Which handler takes which event.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use tracing::warn;

use super::{Calls, Failure};
use crate::delivery::{Claimed, DeliveryId, Lease, Outcome, Payload};
use crate::effect::Under;
use crate::pattern;
use crate::store::{Ledger, Store};
use crate::worker::{Consumer, Report};

/// Handlers by source and type, for one route: a [`Consumer`] of its deliveries.
///
/// ```
/// # use std::sync::Arc;
/// # use oncebox::handler::{Decision, Event, Handlers, Unhandled, apply};
/// # use oncebox::store::SqliteStore;
/// # fn example(store: Arc<SqliteStore>) {
/// let handlers = Handlers::new(store)
///     .on("stripe-*", "invoice.paid", apply(|event: &Event<()>, _| {
///         Ok(Decision::processed(format!("{} is paid", event.event_id)))
///     }))
///     .unhandled(Unhandled::Processed);
/// # }
/// ```
pub struct Handlers<S> {
    store: Arc<S>,
    entries: Vec<Entry<S>>,
    unhandled: Unhandled,
    /// Those whose end is just being committed.
    ending: Mutex<HashSet<(DeliveryId, Lease)>>,
}

/// What becomes of an event that no handler takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unhandled {
    /// It is dead, and says so: visible, and replayable once there is a handler.
    #[default]
    Dead,
    /// It is processed, with a summary that says so.
    Processed,
}

struct Entry<S> {
    source: String,
    event_type: String,
    handler: Arc<dyn Erased<S>>,
}

/// A handler without its types.
#[async_trait]
pub(super) trait Erased<S>: Send + Sync + 'static {
    async fn handle(
        &self,
        attempt: &Attempt<'_, S>,
        claimed: &Claimed,
        payload: Payload,
    ) -> Result<Report, Failure>;
}

impl<S> Handlers<S> {
    /// No handlers yet, on a store.
    pub fn new(store: Arc<S>) -> Self {
        let (entries, ending) = (Vec::new(), Mutex::default());
        Self { store, entries, unhandled: Unhandled::default(), ending }
    }

    /// Says what becomes of events that no handler takes.
    pub fn unhandled(self, unhandled: Unhandled) -> Self {
        Self { unhandled, ..self }
    }

    pub(super) fn register(
        mut self,
        source: String,
        event_type: String,
        handler: Arc<dyn Erased<S>>,
    ) -> Self {
        self.entries.push(Entry { source, event_type, handler });
        self
    }

    pub(super) fn store(&self) -> &Arc<S> {
        &self.store
    }

    fn find(&self, claimed: &Claimed) -> Option<&Arc<dyn Erased<S>>> {
        let takes = |entry: &&Entry<S>| {
            pattern::matches(&entry.source, &claimed.source_name)
                && pattern::matches(&entry.event_type, &claimed.event_type)
        };
        self.entries.iter().find(takes).map(|entry| &entry.handler)
    }

    fn pass_over(&self, claimed: &Claimed) -> Report {
        let (source, event_type) = (&claimed.source_name, &claimed.event_type);
        match self.unhandled {
            Unhandled::Processed => {
                let summary = Some(format!("no handler takes `{event_type}` of `{source}`"));
                Report { summary, ..Report::of(Outcome::Processed) }
            }
            Unhandled::Dead => {
                let detail = Some(format!(
                    "no handler takes `{event_type}` of `{source}`; register one with \
                     `Handlers::on` and replay it, take the type out of `events` of the route, or \
                     let such events pass with `Unhandled::Processed`"
                ));
                Report { detail, ..Report::of(Outcome::Dead) }
            }
        }
    }

    fn ending(&self) -> MutexGuard<'_, HashSet<(DeliveryId, Lease)>> {
        self.ending.lock().expect("no panic while noting")
    }
}

#[async_trait]
impl<S: Store> Consumer for Handlers<S> {
    async fn deliver(&self, claimed: &Claimed, payload: Payload) -> Report {
        let Some(handler) = self.find(claimed) else { return self.pass_over(claimed) };
        let under = Under { delivery: claimed.delivery, lease: claimed.lease };
        let attempt = Attempt { handlers: self, under };
        match handler.handle(&attempt, claimed, payload).await {
            Ok(report) => report,
            Err(failure) => attempt.failed(failure).await.report(claimed.counts),
        }
    }

    fn is_ending(&self, claimed: &Claimed) -> bool {
        self.ending().contains(&(claimed.delivery, claimed.lease))
    }
}

/// One attempt at a delivery.
pub(super) struct Attempt<'a, S> {
    handlers: &'a Handlers<S>,
    pub(super) under: Under,
}

impl<S: Ledger> Attempt<'_, S> {
    pub(super) fn store(&self) -> &Arc<S> {
        self.handlers.store()
    }

    pub(super) fn calls(&self) -> Calls {
        Calls::new(self.store().clone(), self.under)
    }

    /// What becomes of a failure: a delivery that met an effect whose outcome is unknown is held.
    async fn failed(&self, failure: Failure) -> Failure {
        let Some(open) = failure.is_open() else { return failure };
        let _ending = self.ending();
        match self.calls().wait_for(open).await {
            Ok(instead) => instead.unwrap_or(failure),
            Err(error) => {
                let (delivery, effect) = (self.under.delivery, &open.key);
                warn!(%delivery, effect, %error, "an effect in the way could not be looked at");
                failure
            }
        }
    }

    /// From here on the attempt is being ended, and must not be cut short.
    pub(super) fn ending(&self) -> impl Drop + '_ {
        let key = (self.under.delivery, self.under.lease);
        self.handlers.ending().insert(key);
        IsEnding { handlers: self.handlers, key }
    }
}

struct IsEnding<'a, S> {
    handlers: &'a Handlers<S>,
    key: (DeliveryId, Lease),
}

impl<S> Drop for IsEnding<'_, S> {
    fn drop(&mut self) {
        self.handlers.ending().remove(&self.key);
    }
}
