//! `oncebox replay --conflict`: a receipt of its own for what was kept aside.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::clock::SystemClock;
use oncebox::receipt::{Arrival, ReceiptId, decode_headers};
use oncebox::store::{KeptAside, Store};
use oncebox_server::config::{Config, Keyrings, Signers};
use oncebox_server::metrics::Metrics;
use oncebox_server::public::{self, SIGNED_URL_HEADER};
use oncebox_server::push::Dial;
use oncebox_server::route::Routes;
use oncebox_server::source::{Source, Sources};
use oncebox_server::state::Means;
use oncebox_verify::{Request, identify, verify};
use serde_json::json;

use super::{Replay, confirm};
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, count, escape, notice};

impl Replay {
    pub(super) async fn promote(
        &self,
        config: &Config,
        store: &Arc<dyn Store>,
        id: ReceiptId,
    ) -> Result<(), Failure> {
        let kept = store.odd_arrival(id).await?.ok_or_else(|| not_there(id))?;
        let source = source(config, store, &kept.source).await?;
        let arrival = arrival(&source, &kept)?;
        let routes = count(arrival.takers.len(), "route");
        let (oddity, event_id) = (kept.arrival.oddity, escape(&arrival.event_id).into_owned());
        let plan = format!("{oddity} {id} of {event_id} becomes a receipt, taken by {routes}");
        if self.dry_run {
            return self.tell_promoted(&plan, &kept, &arrival);
        }
        notice(&plan);
        confirm(self.yes, "Promote it?")?;
        let act = self.operator.act(self.reason.as_deref());
        if !store.promote(arrival.clone(), &act).await? {
            return Err(not_there(id));
        }
        let done = format!("{oddity} {id} of {event_id} is a receipt, taken by {routes}");
        self.tell_promoted(&done, &kept, &arrival)
    }

    fn tell_promoted(
        &self,
        words: &str,
        kept: &KeptAside,
        arrival: &Arrival,
    ) -> Result<(), Failure> {
        let mut screen = Screen::stdout();
        if self.json {
            screen.json(&json!({
                "receipt": arrival.receipt.to_string(),
                "oddity": kept.arrival.oddity.as_str(),
                "of": kept.receipt.to_string(),
                "source": kept.source,
                "event_id": arrival.event_id,
                "event_type": arrival.event_type,
                "object_id": arrival.object,
                "version": arrival.version,
                "routes": arrival.takers.len(),
                "promoted": !self.dry_run,
            }))?;
        } else {
            screen.line(words)?;
        }
        screen.flush()?;
        Ok(())
    }
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
    let no_source = || context::no_source(name, config.sources.keys().map(String::as_str));
    if !config.sources.contains_key(name) {
        return Err(no_source());
    }
    let keyrings = Keyrings::from([(name.to_owned(), config.keyring(name)?)]);
    let means = Means {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        metrics: Arc::new(Metrics::new()),
        dial: Dial::system(),
    };
    let routes = Routes::build(config, Signers::new(), &means).await?;
    let sources = Sources::build(config, keyrings, &routes, &means).await?;
    sources.find(name).cloned().ok_or_else(no_source)
}

/// The arrival that receiving it as a new event would have made.
fn arrival(source: &Source, kept: &KeptAside) -> Result<Arrival, Failure> {
    let headers = headers(&kept.headers);
    let url = headers.get(SIGNED_URL_HEADER).and_then(|url| url.to_str().ok()).unwrap_or("/");
    let odd = &kept.arrival;
    let request = Request { method: "POST", url, headers: &headers, body: &odd.body };
    let verified = verify(&source.provider, &source.keyring, &request, odd.received_at).ok();
    if verified.is_none() {
        // It was believed when it came; a secret that has gone since does not change that.
        notice("its signature cannot be checked again: which secret it had is not known");
    }
    let event = identify(&source.provider, &request).map_err(|malformed| {
        Failure::check(format!("it can no longer be identified: {malformed}"))
            .hint("was the provider or the scheme of its source changed?")
    })?;
    let body = Bytes::copy_from_slice(&odd.body);
    let unknown = usize::MAX;
    Ok(Arrival {
        receipt: odd.id,
        received_at: odd.received_at,
        secret: source.secret(verified.as_ref().map_or(unknown, |verified| verified.secret)),
        signed_at: verified.and_then(|verified| verified.signed_at),
        headers: kept.headers.clone(),
        ..public::arrival(source, &request, event, body)
    })
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
