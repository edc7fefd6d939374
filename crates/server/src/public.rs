//! The front door: one webhook, straight through.
//!
//! `POST /in/{source}` → refuse what no body could prove → bound the body and the time → verify
//! over raw bytes with each current secret → identify → record, together with others that wait
//! for the same commit → answer.
//! A question of the provider is answered on the way and not recorded.
//! `decide` is that line; everything else here serves it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request};
use hyper::body::Body;
use oncebox::receipt::SecretNo;
use oncebox_verify::{Event, Found, Head, QUESTION_BYTES_MAX};

use crate::address;
use crate::line::Line;
use crate::logs::{self, Decided};
use crate::source::Source;
use crate::state::{Inbox, Live};

mod answer;
mod beside;
mod body;
mod capture;
mod judge;
mod pair;
mod question;
mod record;
mod rejected;
mod strongest;
mod verdict;

pub use answer::Answer;
pub use record::arrival;

use body::{AtHand, BodyError, Bounds, Rest};
use judge::{Judge, doubted};
use record::{Kept, Parcel};
use verdict::{Doubt, Verdict};

/// Under which a receipt keeps the URL its signature covers.
pub const SIGNED_URL_HEADER: &str = "oncebox-signed-url";

/// The answer to every request while nothing can be recorded yet.
pub(crate) fn not_ready<B>(request: Request<B>) -> Answer
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    let (parts, body) = request.into_parts();
    body::drain(&parts.headers, body, body::UNWANTED_REST);
    answer::closing(answer::unavailable())
}

/// Answers one request on the public listener, or wherever else a service has mounted the front
/// door.
pub async fn receive<B>(inbox: Arc<Inbox>, peer: IpAddr, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    let began = Instant::now();
    let live = inbox.live();
    let (parts, mut body) = request.into_parts();
    let chunked = parts.headers.contains_key(TRANSFER_ENCODING);
    let correlation = logs::correlation(&parts.headers);
    let mut note = Note::of(peer, &parts, &inbox, &live);
    let verdict = match decide(&inbox, &live, &parts, &mut body, &mut note).await {
        Ok(kept) => {
            // A request that waits for its delivery takes no memory from others.
            note.body = None;
            kept.settled(&inbox).await
        }
        Err(verdict) => verdict,
    };
    let took = began.elapsed();
    verdict.count(note.source.as_ref().map_or(&inbox.unknown, |source| &source.metrics), took);
    let answer = verdict.answer(note.answers_as.as_deref());
    let hint = verdict.hint();
    rejected::note(&inbox, &note, &parts, &verdict, hint.as_deref());
    let decided = Decided {
        status: answer.status().as_u16(),
        sender: note.sender,
        path: note.path.as_deref(),
        source: note.source.as_ref().map(|source| &*source.name),
        event_id: note.event_id.as_deref(),
        event_type: note.event_type.as_deref(),
        object_id: note.object_id.as_deref(),
        receipt: verdict.receipt(),
        batch: verdict.batch().map(|batch| &batch.counts),
        outcome: verdict.outcome(),
        reason: verdict.reason(),
        hint: hint.as_deref(),
        correlation,
        took,
    };
    logs::decision(&decided);
    inbox.activity.show(|| Line::decided(&decided));
    let most = match &verdict {
        Verdict::Body(_) => body::UNWANTED_REST,
        _ => live.max_body,
    };
    let rest = body::drain(&parts.headers, body, most);
    // A chunked request that a proxy in front of us read differently may have left bytes of its
    // own choosing on the connection. Nothing is read after it, nor after a body that may not end.
    if chunked || rest == Rest::Much { answer::closing(answer) } else { answer }
}

/// What is known about a request when it is logged, however far it came.
struct Note {
    sender: IpAddr,
    /// Where it went, if that is no source of ours, or if that is nobody's business.
    path: Option<String>,
    source: Option<Arc<Source>>,
    /// The source, or what stands in for it.
    answers_as: Option<Arc<Source>>,
    event_id: Option<String>,
    event_type: Option<String>,
    object_id: Option<String>,
    /// The secret by which it verified.
    secret: Option<SecretNo>,
    /// What was received of its body, where its source keeps requests that it rejects.
    body: Option<Bytes>,
    /// The length that its body announced.
    announced: Option<u64>,
    /// Whether the log or an `oncebox tail` shows what is noted of the event.
    is_read: bool,
}

/// The straight line to what is kept. An error is a verdict reached early.
async fn decide(
    inbox: &Inbox,
    live: &Live,
    parts: &Parts,
    body: impl Body<Data = Bytes> + Unpin,
    note: &mut Note,
) -> Result<Kept, Verdict> {
    let name = source_name(parts.uri.path()).ok_or(Verdict::NotFound)?;
    let source = live.sources.find(name);
    note.source.clone_from(&source);
    if let Some(source) = capture::taking_anything(source.as_ref()) {
        return Err(match capture::keep(inbox, live, &source, parts, body, note).await {
            Ok(verdict) | Err(verdict) => verdict,
        });
    }
    // Looked for even if there is such a source, for that takes time.
    let stand_in = live.stand_in(name);
    let is_known = source.is_some();
    let source = source.or(stand_in);
    note.answers_as.clone_from(&source);
    question::check_method(&parts.method, source.as_ref().map(|source| &source.provider))?;
    check_encoding(&parts.headers)?;
    if source.is_none() && !live.hide_unknown_sources {
        return Err(Verdict::NotFound);
    }
    body::check_announced(&parts.headers, &body, live.max_body).map_err(Verdict::Body)?;
    let Some(source) = source else {
        return Err(doubted(inbox, live, note.sender, Doubt::NoSource));
    };
    note.announced = body::announced(&parts.headers, &body);
    let url = url(parts, source.public_url.as_deref(), source.signs_url);
    let body = receive_of(inbox, live, &source, &request(parts, &url, b""), body, note).await?;
    let received = (inbox.clock.now(), Instant::now());
    let judge = Judge { inbox, live, sender: note.sender, at: received.0, is_known };

    let bytes = body.bytes.clone();
    note.body = (source.keep_rejected > 0).then(|| bytes.clone());
    let request = &request(parts, &url, &bytes);
    if let Some(reply) = question::open(&source, request) {
        return Err(Verdict::Handshake(reply));
    }
    if let Some(secret) = oncebox_verify::pairing_secret(&source.provider, request) {
        return Err(judge.pair(&source, &secret).await);
    }
    if !question::may_be_signed(&parts.method, &source.provider) {
        return Err(judge.doubt(Doubt::NoHandshake));
    }
    let (source, verified) = judge.verify_of(&source, request).await?;
    // What stands in for a source takes nothing.
    judge.check_known()?;
    note.secret = source.secret_used(verified.secret);
    judge.learn_strongest(&source, &verified).await?;
    if let Some(reply) = question::signed(inbox, &source, request, &verified) {
        return Err(Verdict::Handshake(reply));
    }
    if parts.method != Method::POST {
        return Err(judge.doubt(Doubt::NoHandshake));
    }
    let events = || oncebox_verify::events(&source.provider, request);
    let found = inbox.beside(bytes.len(), events).await.map_err(Verdict::Malformed)?;
    let parcel = Parcel { inbox, source: &source, request, body, verified, received };
    match <[Found<'_>; 1]>::try_from(found) {
        Ok([found]) if found.item.is_none() => {
            note.event(&found.event);
            parcel.record(found).await
        }
        Ok([found]) => parcel.record_all(vec![found]).await,
        Err(found) => parcel.record_all(found).await,
    }
}

/// Receives the body of a request to a source, if it may prove anything: a sender without a proof
/// is not waited for and takes no memory. A small body that is all there needs no such judgement,
/// which would read the proof a second time.
async fn receive_of(
    inbox: &Inbox,
    live: &Live,
    source: &Source,
    head: &oncebox_verify::Request<'_>,
    mut body: impl Body<Data = Bytes> + Unpin,
    note: &mut Note,
) -> Result<body::Received, Verdict> {
    let sender = note.sender;
    let doubt = |rejection| doubted(inbox, live, sender, Doubt::Rejected(rejection));
    let bounds = |max| Bounds::of(inbox, live, sender, max);
    let begun = match body::at_hand(&mut body, &bounds(QUESTION_BYTES_MAX)) {
        Ok(AtHand::Whole(received)) => return Ok(received),
        Ok(AtHand::Part(begun)) => begun,
        Err(error) => return Err(Verdict::Body(error)),
    };
    let receive = |max| body::receive(head.headers, begun, body, bounds(max));
    match oncebox_verify::head(&source.provider, &source.keyring, head) {
        Head::Promising => receive(live.max_body).await.map_err(Verdict::Body),
        // What can only be a question is small.
        Head::Question(rejection) => {
            let body = receive(QUESTION_BYTES_MAX).await;
            body.map_err(|error| match error {
                BodyError::TooLarge => doubt(rejection),
                error => Verdict::Body(error),
            })
        }
        Head::Hopeless(rejection) => {
            if source.keep_rejected > 0 {
                let body = receive(QUESTION_BYTES_MAX).await;
                note.body = body.ok().map(|body| body.bytes);
            }
            Err(doubt(rejection))
        }
    }
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

impl Note {
    fn of(peer: IpAddr, parts: &Parts, inbox: &Inbox, live: &Live) -> Self {
        let path = parts.uri.path();
        let is_ours = source_name(path).is_some_and(|name| live.sources.find(name).is_some());
        // Where nobody may tell which sources exist, all lines are equally long to write.
        let is_told = !is_ours || live.hide_unknown_sources;
        Self {
            sender: address::sender(peer, &parts.headers, &live.trusted_proxies),
            path: (is_told && logs::wants_decisions()).then(|| path.to_owned()),
            source: None,
            answers_as: None,
            event_id: None,
            event_type: None,
            object_id: None,
            secret: None,
            body: None,
            announced: None,
            is_read: logs::wants_decisions() || inbox.activity.is_watched(),
        }
    }

    /// Notes the event, if anybody is going to read it.
    fn event(&mut self, event: &Event<'_>) {
        if self.is_read {
            self.event_id = Some(event.id.clone().into_owned());
            self.event_type = Some(event.event_type.clone().into_owned());
            self.object_id = event.object.clone().map(Cow::into_owned);
        }
    }
}
