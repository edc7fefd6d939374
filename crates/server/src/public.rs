//! The front door: one webhook, straight through.
//!
//! `POST /in/{source}` → bound the body and the time → verify over raw bytes with each current
//! secret → identify → record, together with whoever else waits for the same commit → answer.
//! `decide` is that line; everything else here serves it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request};
use hyper::body::Body;
use jiff::Timestamp;
use oncebox::delivery::DeliveryId;
use oncebox::ingest::Refused;
use oncebox::receipt::{Arrival, ReceiptId, Recorded, encode_headers};
use oncebox_verify::{Event, Malformed, Rejection, Reply, Trust};
use sha2::{Digest, Sha256};

use crate::address;
use crate::awaited::{Settled, Wanted};
use crate::logs::{self, Decided};
use crate::metrics::Outcome;
use crate::route::Route;
use crate::source::Source;
use crate::state::{Inbox, Live};

mod answer;
mod body;

pub use answer::Answer;
use body::BodyError;

/// How long it may take to find out whether an event is kept. The sender also waits for the commit.
const KNOWN_WAIT: Duration = Duration::from_millis(500);

/// Under which a receipt keeps the URL its signature covers.
pub const SIGNED_URL_HEADER: &str = "oncebox-signed-url";

/// Answers one request on the public listener, or wherever else a service has mounted the front
/// door.
pub async fn receive<B>(inbox: Arc<Inbox>, peer: IpAddr, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes> + Unpin,
{
    let began = Instant::now();
    let live = inbox.live();
    let (parts, body) = request.into_parts();
    let chunked = parts.headers.contains_key(TRANSFER_ENCODING);
    let correlation = logs::correlation(&parts.headers);
    let mut note = Note::of(peer, &parts, &live);
    let verdict = match decide(&inbox, &live, parts, body, &mut note).await {
        Ok(verdict) | Err(verdict) => verdict,
    };
    let took = began.elapsed();
    let outcome = verdict.outcome();
    let reason = verdict.reason();
    let metrics = note.source.as_ref().map_or(&inbox.unknown, |source| &source.metrics);
    metrics.count(outcome, reason, took);
    let answer = verdict.answer(note.source.as_deref());
    logs::decision(&Decided {
        status: answer.status().as_u16(),
        sender: note.sender,
        path: note.path.as_deref(),
        source: note.source.as_ref().map(|source| &*source.name),
        event_id: note.event_id.as_deref(),
        event_type: note.event_type.as_deref(),
        object_id: note.object_id.as_deref(),
        receipt: verdict.receipt(),
        outcome,
        reason,
        hint: verdict.hint().as_deref(),
        correlation,
        took,
    });
    // A chunked request that a proxy in front of us read differently may have left bytes of its
    // own choosing on the connection. Nothing is read after it.
    if chunked { answer::closing(answer) } else { answer }
}

/// What came of a request.
enum Verdict {
    Recorded(ReceiptId, Recorded, Option<Settled>),
    Ignored,
    Handshake(Reply),
    Malformed(Malformed),
    NotBelieved(Rejection),
    TooManyFailures(Rejection, u64),
    ClockSuspect,
    NotFound,
    NotPost,
    Encoded,
    Body(BodyError),
    OverRate,
    OverQuota,
    Refused(Refused),
}

/// What is known about a request when it is logged, however far it came.
struct Note {
    sender: IpAddr,
    /// Where it went, if that is no source of ours, or if that is nobody's business.
    path: Option<String>,
    source: Option<Arc<Source>>,
    event_id: Option<String>,
    event_type: Option<String>,
    object_id: Option<String>,
}

/// The straight line. An error is a verdict reached early.
async fn decide(
    inbox: &Inbox,
    live: &Live,
    parts: Parts,
    body: impl Body<Data = Bytes> + Unpin,
    note: &mut Note,
) -> Result<Verdict, Verdict> {
    let name = source_name(parts.uri.path()).ok_or(Verdict::NotFound)?;
    let source = live.sources.find(name).cloned();
    note.source.clone_from(&source);
    if parts.method != Method::POST {
        return Err(Verdict::NotPost);
    }
    check_encoding(&parts.headers)?;
    if source.is_none() && !live.hide_unknown_sources {
        return Err(Verdict::NotFound);
    }
    let body = body::receive(&parts.headers, body, live.max_body, live.body_timeout, &inbox.memory);
    let body = body.await.map_err(Verdict::Body)?;
    let (received_at, arrived) = (inbox.clock.now(), Instant::now());

    let Some(source) = source else {
        let rejection = pretend(live, name, &parts, &body.bytes, received_at);
        return Err(not_believed(inbox, live, note.sender, rejection));
    };
    let url = url(&parts, source.public_url.as_deref(), source.signs_url);
    let request = request(&parts, &url, &body.bytes);
    let verified = oncebox_verify::verify(&source.provider, &source.keyring, &request, received_at)
        .map_err(|rejection| not_believed(inbox, live, note.sender, rejection))?;
    if let Some(reply) =
        oncebox_verify::handshake(&source.provider, &source.keyring, &request, true)
    {
        return Ok(Verdict::Handshake(reply));
    }
    let event = oncebox_verify::identify(&source.provider, &request).map_err(Verdict::Malformed)?;
    note.event(&event);
    if !source.takes(&event.event_type) {
        return Ok(Verdict::Ignored);
    }
    if !source.is_within_rate() {
        return Err(Verdict::OverRate);
    }
    let within_quota = source.is_within_quota(inbox.ingest.stored_bytes(source.number));
    if !within_quota && !is_kept(inbox, &source, &event.id).await {
        return Err(Verdict::OverQuota);
    }
    let arrival = Arrival {
        receipt: inbox.mint.mint(received_at),
        received_at,
        secret: source.secret(verified.secret),
        signed_at: verified.signed_at,
        headers: stored_headers(&source, &parts.headers, &url),
        // A source that is full makes room for no oddity either.
        keep_aside: within_quota,
        ..arrival(&source, &request, event, body.bytes.clone())
    };
    let receipt = arrival.receipt;
    let awaited = source.awaits(&arrival.takers);
    let recorded = inbox.ingest.record(arrival).await.map_err(Verdict::Refused)?;
    // Whoever waits for an outcome takes no memory from others.
    drop(body);
    let settled = match awaited {
        Some((route, timeout)) => settle(inbox, route, arrived + timeout, receipt, recorded).await,
        None => None,
    };
    Ok(Verdict::Recorded(receipt, recorded, settled))
}

/// Waits for the outcome of an event that is recorded, just now or before; an odd arrival waits
/// for the event it is taken for. None if the route did not take that when it was new.
async fn settle(
    inbox: &Inbox,
    route: &Route,
    until: Instant,
    receipt: ReceiptId,
    recorded: Recorded,
) -> Option<Settled> {
    let is_new = recorded == Recorded::Accepted;
    let delivery = DeliveryId { receipt: recorded.receipt(receipt), route: route.number };
    let wanted = Wanted { delivery, is_new, base: route.rules.base, until: until.into() };
    inbox.awaited.settle(&*inbox.store, wanted).await
}

/// Whether an event is known to be kept: a repeat takes no room, and must not hear that there is
/// none.
async fn is_kept(inbox: &Inbox, source: &Source, event_id: &str) -> bool {
    let known = inbox.store.identity(source.number, event_id);
    matches!(tokio::time::timeout(KNOWN_WAIT, known).await, Ok(Ok(Some(_))))
}

/// The source a path names: `/in/{source}` and nothing below it.
fn source_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/in/")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// Bodies are taken as they are signed. What would have to be unpacked first could be a bomb.
fn check_encoding(headers: &HeaderMap) -> Result<(), Verdict> {
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().all(plain) { Ok(()) } else { Err(Verdict::Encoded) }
}

fn request<'a>(parts: &'a Parts, url: &'a str, body: &'a [u8]) -> oncebox_verify::Request<'a> {
    oncebox_verify::Request { method: parts.method.as_str(), url, headers: &parts.headers, body }
}

/// The URL as the provider saw it, where that matters. Behind a proxy only the configuration
/// knows it; without one, providers call by https and the name in `Host`.
fn url<'a>(parts: &'a Parts, public_url: Option<&'a str>, signed: bool) -> Cow<'a, str> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    if !signed {
        return Cow::Borrowed(target);
    }
    match (public_url, parts.uri.query()) {
        (Some(url), Some(query)) if !url.contains('?') => Cow::Owned(format!("{url}?{query}")),
        (Some(url), _) => Cow::Borrowed(url),
        (None, _) => {
            let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
            Cow::Owned(format!("https://{}{target}", host.unwrap_or_default()))
        }
    }
}

/// Does for a source that does not exist what would be done for one that does.
fn pretend(live: &Live, name: &str, parts: &Parts, body: &Bytes, at: Timestamp) -> Rejection {
    let Some(decoy) = live.sources.decoy(name) else { return Rejection::NoSecret };
    let url = url(parts, None, decoy.signs_url);
    let request = request(parts, &url, body);
    match oncebox_verify::verify(&decoy.provider, &decoy.keyring, &request, at) {
        Err(rejection) => rejection,
        // Nobody has the secret of a decoy; and if somebody guessed it, it opens nothing.
        Ok(_) => Rejection::NoSecret,
    }
}

/// What a sender without a valid signature hears. Only failures count against an address, and
/// only failures are refused because of it.
fn not_believed(inbox: &Inbox, live: &Live, sender: IpAddr, rejection: Rejection) -> Verdict {
    if rejection.is_about_time() && inbox.clock_watch.is_suspect_now(&*inbox.clock) {
        return Verdict::ClockSuspect;
    }
    let per_minute = live.failed_signatures_per_minute;
    match inbox.failures.note(sender, per_minute, Instant::now()) {
        Ok(()) => Verdict::NotBelieved(rejection),
        Err(wait) => Verdict::TooManyFailures(rejection, wait.as_secs() + 1),
    }
}

/// What the request and its event say of the arrival; the caller knows the rest.
pub fn arrival(
    source: &Source,
    request: &oncebox_verify::Request<'_>,
    event: Event<'_>,
    body: Bytes,
) -> Arrival {
    let provider = &source.provider;
    let digest: [u8; 32] = Sha256::digest(&body).into();
    let content = match provider.content_is_body() {
        true => digest,
        false => oncebox_verify::content_digest(provider, request),
    };
    let guard = match event.trust {
        Trust::Signed => None,
        Trust::Transport | Trust::Digest => oncebox_verify::guard_digest(provider, request),
    };
    Arrival {
        source: source.number,
        guard,
        keep_aside: true,
        trust: event.trust,
        takers: source.takers(&event, &body),
        event_id: event.id.into_owned(),
        event_type: event.event_type.into_owned(),
        object: event.object.map(Cow::into_owned),
        version: event.version,
        digest,
        content,
        body,
        receipt: ReceiptId::from_bytes([0; 16]),
        received_at: Timestamp::UNIX_EPOCH,
        secret: source.secret(0),
        signed_at: None,
        headers: Vec::new(),
        part: None,
    }
}

/// The headers as kept: credentials only as fingerprints, and the URL beside them where the
/// signature covers it, so that the receipt can be verified again.
fn stored_headers(source: &Source, headers: &HeaderMap, url: &str) -> Vec<u8> {
    let has_credentials = source.credentials().iter().any(|name| headers.contains_key(name));
    if !has_credentials && !source.signs_url {
        return encode_headers(headers);
    }
    let mut kept = headers.clone();
    kept.remove(SIGNED_URL_HEADER);
    if let (true, Ok(url)) = (source.signs_url, HeaderValue::from_str(url)) {
        kept.insert(SIGNED_URL_HEADER, url);
    }
    for name in source.credentials() {
        kept.remove(name);
        for value in headers.get_all(name) {
            let print = format!("sha256:{}", hex::encode(&Sha256::digest(value.as_bytes())[..4]));
            kept.append(name, HeaderValue::try_from(print).expect("hex is a header value"));
        }
    }
    encode_headers(&kept)
}

impl Note {
    fn of(peer: IpAddr, parts: &Parts, live: &Live) -> Self {
        let path = parts.uri.path();
        let is_ours = source_name(path).is_some_and(|name| live.sources.find(name).is_some());
        // Where nobody may tell which sources exist, all lines are equally long to write.
        let is_told = !is_ours || live.hide_unknown_sources;
        Self {
            sender: address::sender(peer, &parts.headers, &live.trusted_proxies),
            path: (is_told && logs::wants_decisions()).then(|| path.to_owned()),
            source: None,
            event_id: None,
            event_type: None,
            object_id: None,
        }
    }

    /// Notes the event, if anybody is going to read it.
    fn event(&mut self, event: &Event<'_>) {
        if logs::wants_decisions() {
            self.event_id = Some(event.id.clone().into_owned());
            self.event_type = Some(event.event_type.clone().into_owned());
            self.object_id = event.object.clone().map(Cow::into_owned);
        }
    }
}

impl Verdict {
    fn outcome(&self) -> Outcome {
        match self {
            // That it is kept is what counts here; how it stands is counted with its route.
            Self::Recorded(_, Recorded::Accepted, _) => Outcome::Accepted,
            Self::Recorded(_, Recorded::Duplicate { .. }, _) => Outcome::Duplicate,
            Self::Recorded(_, Recorded::Conflict { .. }, _) => Outcome::Conflict,
            Self::Recorded(_, Recorded::Twin { .. }, _) => Outcome::Twin,
            Self::Ignored => Outcome::Ignored,
            Self::Handshake(_) => Outcome::Handshake,
            Self::Malformed(_) => Outcome::Malformed,
            Self::NotBelieved(_) | Self::TooManyFailures(..) => Outcome::Rejected,
            Self::NotFound | Self::NotPost | Self::Encoded => Outcome::Rejected,
            Self::Body(BodyError::OutOfMemory) => Outcome::Unavailable,
            Self::Body(_) => Outcome::Rejected,
            Self::ClockSuspect | Self::OverRate | Self::OverQuota | Self::Refused(_) => {
                Outcome::Unavailable
            }
        }
    }

    /// Why, where it was not kept: a label and a field, never renamed.
    fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Recorded(_, _, Some(Settled::NotYet)) => Some(Settled::NotYet.as_str()),
            Self::Recorded(..) | Self::Ignored | Self::Handshake(_) => None,
            Self::Malformed(malformed) => Some(malformed.code()),
            Self::NotBelieved(rejection) | Self::TooManyFailures(rejection, _) => {
                Some(rejection.code())
            }
            Self::ClockSuspect => Some("clock_suspect"),
            Self::NotFound => Some("unknown_source"),
            Self::NotPost => Some("method"),
            Self::Encoded => Some("content_encoding"),
            Self::Body(BodyError::TooLarge) => Some("body_too_large"),
            Self::Body(BodyError::TooSlow) => Some("body_too_slow"),
            Self::Body(BodyError::Incomplete) => Some("body_incomplete"),
            Self::Body(BodyError::OutOfMemory) => Some("memory_budget"),
            Self::OverRate => Some("source_rate"),
            Self::OverQuota => Some("source_quota"),
            Self::Refused(refused) => Some(refused.code()),
        }
    }

    /// What the operator should check.
    fn hint(&self) -> Option<String> {
        match self {
            Self::Malformed(malformed) => Some(malformed.hint()),
            Self::NotBelieved(rejection) | Self::TooManyFailures(rejection, _) => {
                Some(rejection.hint())
            }
            _ => None,
        }
    }

    /// The receipt that holds the event.
    fn receipt(&self) -> Option<ReceiptId> {
        match self {
            Self::Recorded(own, recorded, _) => Some(recorded.receipt(*own)),
            _ => None,
        }
    }

    fn answer(&self, source: Option<&Source>) -> Answer {
        let plain = self.plain_answer();
        // A provider that wants to hear something else for an event that is kept hears that,
        // unless it is to send the event again.
        match (self, source.and_then(|source| source.provider.answer.as_ref())) {
            (Self::Recorded(.., Some(Settled::NotYet)), _) => plain,
            (Self::Recorded(..) | Self::Ignored, Some(wanted)) => answer::as_wanted(plain, wanted),
            _ => plain,
        }
    }

    fn plain_answer(&self) -> Answer {
        match self {
            Self::Recorded(own, recorded, Some(settled)) => {
                answer::settled(*settled, recorded.receipt(*own))
            }
            Self::Recorded(own, Recorded::Accepted, None) => answer::accepted(*own),
            Self::Recorded(own, repeat, None) => answer::duplicate(repeat.receipt(*own)),
            Self::Ignored => answer::ignored(),
            Self::Handshake(reply) => answer::reply(reply),
            Self::Malformed(malformed) => answer::malformed(malformed.code()),
            Self::NotBelieved(_) => answer::invalid_signature(),
            Self::TooManyFailures(_, after) => answer::too_many_failures(*after),
            Self::NotFound => answer::not_found(),
            Self::NotPost => answer::method_not_allowed(),
            Self::Encoded => answer::encoded(),
            Self::Body(BodyError::TooLarge) => answer::too_large(),
            Self::Body(BodyError::TooSlow) => answer::too_slow(),
            Self::Body(BodyError::Incomplete) => answer::incomplete(),
            Self::Body(BodyError::OutOfMemory) => answer::unavailable(),
            Self::ClockSuspect | Self::OverRate | Self::OverQuota | Self::Refused(_) => {
                answer::unavailable()
            }
        }
    }
}
