//! Requests to a source that keeps whatever comes.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderName;
use http::request::Parts;
use http::{HeaderValue, Method};
use hyper::body::Body;
use oncebox::receipt::{Arrival, encode_headers};
use oncebox_verify::{Event, Trust};

use super::body::Bounds;
use super::record::kept_headers;
use super::verdict::Verdict;
use super::{Note, body};
use crate::capture::{BODY_MAX, REQUEST_HEADER, TRUST_HEADER, UNVERIFIED};
use crate::source::Source;
use crate::state::{Inbox, Live};

/// How a request may come. A link that is opened is one, too.
const METHODS: [Method; 4] = [Method::GET, Method::POST, Method::PUT, Method::PATCH];

/// Keeps a request as it came, unverified and marked so. Each is an event of its own.
pub(super) async fn keep(
    inbox: &Inbox,
    live: &Live,
    source: &Source,
    parts: &Parts,
    body: impl Body<Data = Bytes> + Unpin,
    note: &mut Note,
) -> Result<Verdict, Verdict> {
    if !METHODS.contains(&parts.method) {
        return Err(Verdict::Method(Cow::Borrowed("GET, POST, PUT, PATCH")));
    }
    let bounds = Bounds::of(inbox, live, note.sender, BODY_MAX);
    let body =
        body::receive(&parts.headers, Bytes::new(), body, bounds).await.map_err(Verdict::Body)?;
    let received_at = inbox.clock.now();
    let receipt = inbox.mint.mint(received_at);
    let event = Event {
        id: Cow::Owned(receipt.to_string()),
        trust: Trust::Unverified,
        event_type: Cow::Owned(format!("capture.{}", parts.method.as_str().to_lowercase())),
        object: None,
        version: None,
    };
    note.event(&event);
    if !source.takes(&event.event_type) {
        return Err(Verdict::Ignored(1));
    }
    if !source.is_within_rate() {
        return Err(Verdict::OverRate);
    }
    if !source.is_within_quota(inbox.ingest.stored_bytes(source.number)) {
        return Err(Verdict::OverQuota);
    }
    let (number, bytes) = (source.number, body.bytes.clone());
    let takers = source.takers(&event, &bytes);
    let arrival = Arrival {
        trust: Trust::Unverified,
        headers: headers(source, parts),
        takers,
        ..Arrival::new(receipt, number, received_at, event.id, event.event_type, bytes)
    };
    inbox.ingest.record(arrival).await.map_err(Verdict::Refused)?;
    Ok(Verdict::Captured(receipt))
}

/// The headers as kept, and beside them how the request was sent.
fn headers(source: &Source, parts: &Parts) -> Bytes {
    let mut kept = kept_headers(source, &parts.headers);
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let line = HeaderValue::try_from(format!("{} {target}", parts.method));
    if let Ok(line) = line {
        kept.insert(HeaderName::from_static(REQUEST_HEADER), line);
    }
    kept.insert(HeaderName::from_static(TRUST_HEADER), HeaderValue::from_static(UNVERIFIED));
    encode_headers(&kept)
}

/// The source, if it is one of this kind.
pub(super) fn taking_anything(source: Option<&Arc<Source>>) -> Option<Arc<Source>> {
    source.filter(|source| source.is_capture).cloned()
}
