//! Fetching: the object an event is about, as its provider has it now.
//!
//! A payload may be thin, or tell of a state that has changed since. A route that says `fetch`
//! asks the provider's API before each attempt, and hands the answer over beside the event. Who
//! asks for the same URL at the same time shares one request, and an answer is kept for a moment;
//! both only as far as the answer is newer than the event (see `flights`). [`Fetching`] puts it in
//! front of any consumer.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::{HeaderMap, Uri};
use jiff::Timestamp;
use oncebox::clock::Clock;
use oncebox::delivery::{Claimed, Current, Payload};
use oncebox::worker::{Consumer, Report};

use crate::config::{Missing, RouteConfig};
use crate::metrics::{Fetched, Metrics};
use crate::pattern::{Pattern, any_matches};
use crate::state::Means;

mod exchange;
mod failure;
mod flights;
mod hand_over;
mod template;
mod turns;

pub(crate) use hand_over::pack;
pub use template::{BadTemplate, Place, Template, Unfit};

use exchange::Exchange;
use failure::Failure;
use flights::{Answer, Asked, Flights, Moment, Ticket};
use turns::Turns;

/// A consumer whose deliveries come with the current object; see [`Payload::current`].
pub struct Fetching {
    inner: Arc<dyn Consumer>,
    fetcher: Fetcher,
}

impl Fetching {
    /// Puts a fetch in front of a consumer.
    pub fn new(inner: Arc<dyn Consumer>, fetcher: Fetcher) -> Self {
        Self { inner, fetcher }
    }
}

#[async_trait]
impl Consumer for Fetching {
    async fn deliver(&self, delivery: &Claimed, payload: Payload) -> Report {
        match self.fetcher.current(delivery).await {
            Ok(current) => self.inner.deliver(delivery, Payload { current, ..payload }).await,
            Err(report) => report,
        }
    }

    fn is_ending(&self, delivery: &Claimed) -> bool {
        self.inner.is_ending(delivery)
    }
}

/// Fetches for one route.
pub struct Fetcher {
    url: Template,
    types: Vec<Pattern>,
    missing: Missing,
    shared: Arc<Shared>,
}

/// What requests need, which go on when whoever asked is gone.
struct Shared {
    route: Arc<str>,
    flights: Mutex<Flights>,
    turns: Turns,
    rate: NonZeroU32,
    /// How long a request waits for its turn.
    patience: Duration,
    exchange: Exchange,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

impl Fetcher {
    /// For a route that fetches, with the headers that let it; none if it does not fetch.
    pub fn new(
        name: &str,
        config: &RouteConfig,
        credentials: HeaderMap,
        means: &Means,
    ) -> Option<Self> {
        let fetch = config.fetch.as_ref()?;
        let rate = NonZeroU32::new(fetch.rate)?;
        let connect_timeout = config.sending.connect_timeout.0;
        means.metrics.fetches.prepare(name);
        let shared = Shared {
            route: name.into(),
            flights: Mutex::new(Flights::new(fetch.cache.0)),
            turns: Turns::new(rate),
            rate,
            patience: config.sending.timeout.0,
            exchange: Exchange::new(fetch, credentials, connect_timeout, means),
            clock: means.clock.clone(),
            metrics: means.metrics.clone(),
        };
        Some(Self {
            url: Template::parse(&fetch.url).ok()?,
            types: fetch.types.clone(),
            missing: fetch.missing,
            shared: Arc::new(shared),
        })
    }

    /// What a delivery is about as its provider has it now; none if nothing is fetched for it.
    /// Without it the attempt has ended, and this is how.
    pub async fn current(&self, delivery: &Claimed) -> Result<Option<Current>, Report> {
        if !any_matches(&self.types, &delivery.event_type) {
            return Ok(None);
        }
        let answer = match self.url.fill(delivery) {
            Ok(None) => return Ok(None),
            Ok(Some(url)) => self.answer(url, delivery.received_at).await,
            Err(unfit) => Err(Failure::permanent("url", unfit.to_string())),
        };
        let answer = answer.and_then(|current| match (&current, self.missing) {
            (Current::Missing, Missing::Dead) => {
                let detail = "the provider has no such object any more";
                Err(Failure::permanent("missing", detail))
            }
            _ => Ok(Some(current)),
        });
        answer.map_err(|failure| {
            if let Some(reason) = failure.retry_reason() {
                self.shared.metrics.routes.retry(&self.shared.route, reason);
            }
            failure.report()
        })
    }

    /// What is at a URL, as of after an event was received.
    async fn answer(&self, url: Uri, received_at: Timestamp) -> Answer {
        let shared = &self.shared;
        let key: Arc<str> = url.to_string().into();
        let now = Moment::now(&*shared.clock);
        let asked = shared.flights().ask(&key, received_at, now);
        let mut ear = match asked {
            Asked::Kept(current) => {
                shared.count(Fetched::Cached);
                return Ok(current);
            }
            Asked::Joined(ear) => {
                shared.count(Fetched::Coalesced);
                ear
            }
            Asked::Yours(ticket) => {
                let ear = ticket.ear();
                // On its own, for others wait for it, too: whoever asked first may lose its lease.
                tokio::spawn(fly(shared.clone(), url, key, ticket));
                ear
            }
        };
        let heard = ear.wait_for(Option::is_some).await.map(|answer| answer.clone());
        heard.ok().flatten().unwrap_or_else(|| Err(Failure::broken_off()))
    }
}

/// Makes a request for everybody who waits for it.
async fn fly(shared: Arc<Shared>, url: Uri, key: Arc<str>, mut ticket: Ticket) {
    ticket.turn().await;
    if tokio::time::timeout(shared.patience, shared.turns.take()).await.is_err() {
        shared.flights().give_up(&key);
        shared.count(Fetched::Failed);
        return ticket.tell(Err(Failure::no_turn(shared.rate.get(), shared.patience)));
    }
    let began = Moment::now(&*shared.clock);
    shared.flights().begin(&key, began);
    let answer = shared.exchange.get(url, &*shared.clock).await;
    shared.metrics.fetches.took(&shared.route, Instant::now() - began.steady);
    shared.count(match &answer {
        Ok(Current::Found { .. }) => Fetched::Found,
        Ok(Current::Missing) => Fetched::Missing,
        Err(_) => Fetched::Failed,
    });
    shared.flights().end(&key, began, &answer);
    ticket.tell(answer);
}

impl Shared {
    fn flights(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().expect("no panic while looking something up")
    }

    fn count(&self, fetched: Fetched) {
        self.metrics.fetches.count(&self.route, fetched);
    }
}

#[cfg(test)]
mod tests {
    use oncebox::delivery::{Counts, DeliveryId, Lease};
    use oncebox::receipt::{ReceiptId, RouteNo, SourceNo};

    use super::*;

    /// A delivery for stories about URLs.
    pub(super) fn claimed() -> Claimed {
        Claimed {
            delivery: DeliveryId { receipt: ReceiptId::from_bytes([1; 16]), route: RouteNo(1) },
            lease: Lease(1),
            lease_until: Timestamp::UNIX_EPOCH,
            source: SourceNo(1),
            source_name: "stripe".into(),
            event_id: "evt_1".into(),
            event_type: "invoice.paid".into(),
            object: Some("in_1".into()),
            version: Some(7),
            received_at: Timestamp::UNIX_EPOCH,
            bytes: 0,
            counts: Counts::default(),
            replays: 0,
            guarded: false,
            mark: None,
            key: "ob_key".into(),
        }
    }
}
