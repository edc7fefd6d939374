//! Signing as the provider: each push carries a fresh proof such as the provider would send, so
//! that a handler written with the provider's SDK takes it, however late.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use jiff::Timestamp;
use oncebox::delivery::{Claimed, Payload};
use oncebox::limits;
use oncebox::receipt::decode_headers;
use oncebox::store::Store;
use oncebox_verify::{Draft, Keyring, Provider, Request, alone, is_bare_list, resign};
use tokio::sync::Mutex;

use super::headers;
use crate::public::SIGNED_URL_HEADER;

/// The keys of a source as they are now: a pairing changes them while it runs.
pub type LiveKeys = Arc<ArcSwap<Keyring>>;

/// What the pushes of one route are signed with.
#[derive(Debug, Default)]
pub struct AsProvider {
    /// By the name of the source.
    signers: BTreeMap<String, Signer>,
    /// The URL that is signed, if it is not the one that is pushed to.
    url: Option<String>,
    /// The last request with several events that was read: its events come one after another.
    last: Mutex<Option<Whole>>,
}

/// What signs for one source.
#[derive(Debug)]
pub struct Signer {
    /// Its provider.
    pub provider: Provider,
    /// The first secret of these signs.
    pub keys: LiveKeys,
}

/// The body of a request with several events.
#[derive(Debug)]
struct Whole {
    source: String,
    received_at: Timestamp,
    headers: Vec<u8>,
    /// How many events it carried.
    count: u32,
    body: Bytes,
}

impl Whole {
    /// Whether a delivery came in this request.
    fn has(&self, delivery: &Claimed, payload: &Payload) -> bool {
        self.received_at == delivery.received_at
            && self.source == delivery.source_name
            && self.headers == payload.headers
    }

    /// Whether more of its events are likely to come: they do so in their order. Without this a
    /// route that has become quiet would hold the request for ever.
    fn goes_on_after(&self, position: u32) -> bool {
        position.saturating_add(1) < self.count
    }
}

impl AsProvider {
    /// Signs for no source yet.
    pub fn new(url: Option<String>) -> Self {
        Self { url, ..Self::default() }
    }

    /// Signs so for a source.
    pub fn insert(&mut self, source: String, signer: Signer) {
        self.signers.insert(source, signer);
    }

    /// The request as the provider of its source would send it now, and where it goes; or why it
    /// cannot be made.
    pub(super) async fn draft(
        &self,
        delivery: &Claimed,
        payload: Payload,
        push: &Uri,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<(Draft, Uri), String> {
        let source = &delivery.source_name;
        let Some(Signer { provider, keys }) = self.signers.get(source) else {
            return Err(format!("this route cannot sign for source `{source}`"));
        };
        let theirs = decode_headers(&payload.headers);
        let came_to = theirs.iter().find(|(name, _)| name == SIGNED_URL_HEADER);
        let came_to = came_to.map_or(Cow::Borrowed("/"), |(_, url)| String::from_utf8_lossy(url));
        let headers = headers::compose_as(provider, delivery, &payload.headers);
        let body = match payload.position {
            None => payload.body,
            Some(_) if is_bare_list(provider) => [b"[", payload.body.as_slice(), b"]"].concat(),
            Some(position) => {
                let whole = self.whole(delivery, &payload, position, store).await?;
                in_envelope(provider, headers.clone(), whole, position, payload.body).await?
            }
        };
        let base = self.url.clone().unwrap_or_else(|| push.to_string());
        let method = Method::POST.to_string();
        let draft = Draft { method, url: base.clone(), headers, body };
        let draft = resign(provider, &keys.load(), draft, &came_to, now)
            .map_err(|error| format!("source `{source}`: {error}"))?;
        let uri = extended(push, draft.url.strip_prefix(&base).unwrap_or_default())?;
        Ok((draft, uri))
    }

    /// The body of the request that a delivery came in together with others. One is read at a
    /// time, for it may be large.
    async fn whole(
        &self,
        delivery: &Claimed,
        payload: &Payload,
        position: u32,
        store: &dyn Store,
    ) -> Result<Bytes, String> {
        let mut last = self.last.lock().await;
        let whole = match last.take().filter(|whole| whole.has(delivery, payload)) {
            Some(whole) => whole,
            None => read_whole(delivery, payload, store).await?,
        };
        let body = whole.body.clone();
        *last = Some(whole).filter(|whole| whole.goes_on_after(position));
        Ok(body)
    }
}

/// Reads the request that a delivery came in together with others.
async fn read_whole(
    delivery: &Claimed,
    payload: &Payload,
    store: &dyn Store,
) -> Result<Whole, String> {
    let receipt = store.receipt(payload.receipt).await;
    let receipt = receipt.map_err(|error| format!("the request was not read: {error}"))?;
    let part = receipt.and_then(|receipt| receipt.part);
    let part = part.ok_or("the request that the event came in is gone")?;
    Ok(Whole {
        source: delivery.source_name.clone(),
        received_at: delivery.received_at,
        headers: payload.headers.clone(),
        count: part.count,
        body: part.whole,
    })
}

/// An event alone in what its provider sends around events.
async fn in_envelope(
    provider: &Provider,
    headers: HeaderMap,
    whole: Bytes,
    position: u32,
    event: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let is_large = whole.len() > limits::VERIFY_INLINE_BYTES;
    let provider = provider.clone();
    let cut = move || {
        let request = Request { method: "POST", url: "/", headers: &headers, body: &whole };
        alone(&provider, &request, position, &event)
    };
    let body = match is_large {
        false => cut(),
        true => tokio::task::spawn_blocking(cut).await.map_err(|error| error.to_string())?,
    };
    body.ok_or_else(|| "the event is not in the request that is stored for it".to_owned())
}

/// The URL of the push, with what signing added to the query of the URL that is signed.
fn extended(push: &Uri, added: &str) -> Result<Uri, String> {
    let Some(added) = added.get(1..) else { return Ok(push.clone()) };
    let push = push.to_string();
    let mark = if push.contains('?') { '&' } else { '?' };
    let url = format!("{push}{mark}{added}");
    url.parse().map_err(|_| "the proof does not fit into the URL".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_held_until_its_last_event_was_served() {
        let whole = Whole {
            source: "xero".to_owned(),
            received_at: Timestamp::UNIX_EPOCH,
            headers: Vec::new(),
            count: 3,
            body: Bytes::new(),
        };
        assert_eq!([0, 1, 2, 3].map(|at| whole.goes_on_after(at)), [true, true, false, false]);
    }
}
