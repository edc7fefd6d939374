//! `oncebox replay --conflict`: a receipt of its own for what was kept aside.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::clock::SystemClock;
use oncebox::receipt::{Arrival, ReceiptId, decode_headers};
use oncebox::store::{KeptAside, OddArrival, Store};
use oncebox_server::config::{Config, Keyrings, RouteConfig, Signers};
use oncebox_server::metrics::Metrics;
use oncebox_server::pattern::any_matches;
use oncebox_server::public::{self, SIGNED_URL_HEADER};
use oncebox_server::push::Dial;
use oncebox_server::route::Routes;
use oncebox_server::source::{Source, Sources};
use oncebox_server::state::{Handlers, Means};
use oncebox_verify::{Event, Found, Identity, Provider, Request, events, verify};
use serde_json::json;

use super::Replay;
use crate::context;
use crate::exit::Failure;
use crate::operator::confirm;
use crate::output::{Screen, count, escape, notice};

impl Replay {
    pub(super) async fn promote(
        &self,
        config: &Config,
        store: &Arc<dyn Store>,
        id: ReceiptId,
    ) -> Result<(), Failure> {
        let kept = store.odd_arrival(id).await?.ok_or_else(|| not_there(id))?;
        let Some(configured) = config.sources.get(&kept.source) else {
            let known = config.sources.keys().map(String::as_str);
            return Err(context::no_source(&kept.source, known));
        };
        let headers = headers(&kept.headers);
        let request = request(&kept, &headers);
        let found = identified(&configured.entry, &request, &kept)?;
        let event = found.event.clone();
        let routes = takers(config, &kept.source, &event.event_type);
        if self.manner.dry_run {
            return self.tell_promoted(&kept, &event, routes);
        }
        confirm(self.manner.yes, &format!("{}?", words(&kept, "Make a receipt of", routes)))?;
        let source = source(config, store, &kept.source).await?;
        let arrival = arrival(&source, &kept, &request, found);
        let act = self.manner.operator.act(self.manner.reason.as_deref());
        if !store.promote(arrival, &act).await? {
            return Err(not_there(id));
        }
        self.tell_promoted(&kept, &event, routes)
    }

    fn tell_promoted(
        &self,
        kept: &KeptAside,
        event: &Event<'_>,
        routes: usize,
    ) -> Result<(), Failure> {
        let mut screen = Screen::stdout();
        if self.manner.json {
            screen.json(&json!({
                "receipt": kept.arrival.id.to_string(),
                "oddity": kept.arrival.oddity.as_str(),
                "of": kept.receipt.to_string(),
                "source": kept.source,
                "event_id": event.id,
                "event_type": event.event_type,
                "object_id": event.object,
                "version": event.version,
                "routes": routes,
                "promoted": !self.manner.dry_run,
            }))?;
        } else {
            let done =
                if self.manner.dry_run { "would make a receipt of" } else { "made a receipt of" };
            screen.line(words(kept, done, routes))?;
        }
        screen.flush()?;
        Ok(())
    }
}

fn words(kept: &KeptAside, done: &str, routes: usize) -> String {
    let OddArrival { id, oddity, event_id, .. } = &kept.arrival;
    let (event_id, routes) = (escape(event_id), count(routes, "route"));
    format!("{done} {oddity} {id} of {event_id}, taken by {routes}")
}

fn not_there(id: ReceiptId) -> Failure {
    Failure::not_found(format!("nothing was kept aside as {id}"))
        .hint("`oncebox receipts show RECEIPT` shows what was kept aside for a receipt")
}

/// The source as a server runs it: what identifies an event and which routes take it.
async fn source(
    config: &Config,
    store: &Arc<dyn Store>,
    name: &str,
) -> Result<Arc<Source>, Failure> {
    let keyrings = Keyrings::from([(name.to_owned(), config.keyring(name)?)]);
    let means = Means {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        metrics: Arc::new(Metrics::new()),
        dial: Dial::system(),
        handlers: Handlers::new(),
    };
    let routes = Routes::build(config, &mut Signers::new(), &means).await?;
    let sources = Sources::build(config, keyrings, &routes, &means).await?;
    let no_source = || context::no_source(name, config.sources.keys().map(String::as_str));
    sources.find(name).ok_or_else(no_source)
}

/// How many routes of the configuration take an event.
fn takers(config: &Config, source: &str, event_type: &str) -> usize {
    let routes = config.routes.values();
    let takes = |route: &&RouteConfig| {
        route.sources.iter().any(|name| name == source) && any_matches(&route.events, event_type)
    };
    routes.filter(takes).count()
}

/// The whole request, whatever came in it beside.
fn request<'a>(kept: &'a KeptAside, headers: &'a HeaderMap) -> Request<'a> {
    let url = headers.get(SIGNED_URL_HEADER).and_then(|url| url.to_str().ok());
    let body = kept.part.as_ref().map_or(&kept.arrival.body[..], |part| &part.whole);
    Request { method: "POST", url: url.unwrap_or("/"), headers, body }
}

/// The event at its place in the request, as it was found when it came.
fn identified<'a>(
    provider: &Provider,
    request: &Request<'a>,
    kept: &KeptAside,
) -> Result<Found<'a>, Failure> {
    let no_longer = |why: String| {
        let failure = Failure::check(format!("it can no longer be identified: {why}"));
        match kept.part.is_none() && !provider.batches.is_empty() {
            true => {
                failure.hint("if it came with others, an older oncebox kept only its own bytes")
            }
            false => failure.hint("was the provider or the scheme of its source changed?"),
        }
    };
    let found = events(provider, request).map_err(|malformed| no_longer(malformed.to_string()))?;
    let place = kept.part.as_ref().map_or(0, |part| part.position);
    let at_its_place = usize::try_from(place).ok().and_then(|place| found.into_iter().nth(place));
    let Some(mut found) = at_its_place else {
        return Err(no_longer(format!("its request has no event number {}", u64::from(place) + 1)));
    };
    // A name that was made up is made up anew each time.
    if provider.identity.contains(&Identity::Each) {
        found.event.id = Cow::Owned(kept.arrival.event_id.clone());
    }
    match found.event.id == kept.arrival.event_id {
        true => Ok(found),
        false => Err(no_longer(format!("it came as {}", escape(&kept.arrival.event_id)))),
    }
}

/// The arrival that receiving it as a new event would have made.
fn arrival(source: &Source, kept: &KeptAside, request: &Request<'_>, found: Found<'_>) -> Arrival {
    let odd = &kept.arrival;
    let verified = verify(&source.provider, &source.keyring, request, odd.received_at).ok();
    if verified.is_none() {
        // It was believed when it came; a secret that has gone since does not change that.
        notice("its signature cannot be checked again: which secret it had is not known");
    }
    let unknown = usize::MAX;
    Arrival {
        receipt: odd.id,
        received_at: odd.received_at,
        secret: source.secret(verified.as_ref().map_or(unknown, |verified| verified.secret)),
        signed_at: verified.and_then(|verified| verified.signed_at),
        headers: kept.headers.clone().into(),
        part: kept.part.clone(),
        ..public::arrival(source, request, found, Bytes::copy_from_slice(&odd.body))
    }
}

/// The headers as they were, as far as they can be written as such.
fn headers(stored: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in decode_headers(stored) {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) {
            headers.append(name, value);
        }
    }
    headers
}
