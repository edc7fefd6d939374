//! Digests that tell a repeat from a conflict, and a capture from a new event.
//!
//! Both follow one rule: what verifies the same must digest the same, or a captured request
//! could be rewritten until it passes for something new.

use sha2::{Digest as _, Sha256};

use crate::look::look;
use crate::payload::{bare, claims_text};
use crate::provider::{Guard, Payload, Place, Provider, Scheme, Signature};
use crate::request::Request;
use crate::verify::{Inputs, is_present, signed_chunks, stamp_text};

/// What is compared to tell a repeat of an event from a conflict: the SHA-256 of the body,
/// without the values that change between attempts.
///
/// A form of Twilio counts as it is signed, which is neither in the order nor in the
/// spelling of its bytes. Where [`Provider::content_is_body`], this is the SHA-256 of the
/// body and nothing else.
///
/// ```
/// use oncebox_verify::{Request, catalogue, content_digest};
///
/// let linear = catalogue::find("linear").unwrap();
/// let headers = http::HeaderMap::new();
/// let digest = |body: &[u8]| {
///     content_digest(linear, &Request { method: "POST", url: "/", headers: &headers, body })
/// };
/// let first = digest(br#"{"action":"create","webhookTimestamp":1}"#);
/// assert_eq!(first, digest(br#"{"action":"create","webhookTimestamp":2}"#));
/// ```
pub fn content_digest(provider: &Provider, request: &Request<'_>) -> [u8; 32] {
    let specials = provider.schemes.iter().filter_map(|scheme| match scheme {
        Scheme::Special(special) => special.content(request),
        _ => None,
    });
    if let Some(text) = specials.into_iter().next() {
        return Sha256::digest(text).into();
    }
    // Every attempt has a token of its own.
    if let Payload::Claims(pointer) = provider.payload
        && let Ok(text) = claims_text(request.body, pointer)
    {
        return Sha256::digest(text).into();
    }
    // Of such a form only the payload is signed: its spelling and its neighbours are not.
    if let Some(text) = provider.signed_form_field().and_then(|field| request.form(field).next()) {
        return body_digest(provider, text.as_bytes());
    }
    body_digest(provider, bare(provider, request).body)
}

/// What must not come in again under another identity that is not signed; none where
/// nothing can, as [`Provider::guards_twins`] says.
///
/// Remember it for every event whose [`trust`](crate::Event::trust) is not
/// [`Trust::Signed`](crate::Trust::Signed), and compare it then: known under another
/// identity, the event is a twin, even if its content is another. That includes
/// [`Trust::Digest`](crate::Trust::Digest), for an unsigned id can also be taken away. A signed
/// identity needs none: it can be neither changed nor removed, no entry of the catalogue
/// prefers an unsigned one to it, and two events that prove different ids may have one content.
///
/// ```
/// use oncebox_verify::{Request, catalogue, guard_digest};
///
/// let mailgun = catalogue::find("mailgun").unwrap();
/// let headers = http::HeaderMap::new();
/// let digest = |body: &[u8]| {
///     guard_digest(mailgun, &Request { method: "POST", url: "/", headers: &headers, body })
/// };
/// let genuine = br#"{"signature":{"timestamp":"1","token":"a"},"event-data":{"id":"1"}}"#;
/// let forged = br#"{"signature":{"timestamp":"1","token":"a"},"event-data":{"id":"2"}}"#;
/// assert_eq!(digest(genuine), digest(forged));
/// ```
pub fn guard_digest(provider: &Provider, request: &Request<'_>) -> Option<[u8; 32]> {
    guard_of(provider, || signed_digest(provider, request), || content_digest(provider, request))
}

/// [`content_digest`] of one item of a batch.
pub(crate) fn item_content(provider: &Provider, item: &[u8]) -> [u8; 32] {
    body_digest(provider, item)
}

/// [`guard_digest`] of one item of a batch.
pub(crate) fn item_guard(
    provider: &Provider,
    request: &Request<'_>,
    number: usize,
    item: &[u8],
    content: impl FnOnce() -> [u8; 32],
) -> Option<[u8; 32]> {
    guard_of(provider, || signed_item_digest(provider, request, number, item), content)
}

/// The digest of what is signed where that is asked for and can be read, else of the content.
pub(crate) fn guard_of(
    provider: &Provider,
    signed: impl FnOnce() -> Option<[u8; 32]>,
    content: impl FnOnce() -> [u8; 32],
) -> Option<[u8; 32]> {
    if !provider.guards_twins() {
        return None;
    }
    let signed = match provider.guard {
        Guard::Content | Guard::Nothing => None,
        Guard::Signed => signed(),
    };
    Some(signed.unwrap_or_else(content))
}

fn signed_item_digest(
    provider: &Provider,
    request: &Request<'_>,
    number: usize,
    item: &[u8],
) -> Option<[u8; 32]> {
    let scheme = provider.schemes.iter().find(|scheme| is_present(scheme, request))?;
    if let Some(signature @ Signature { place: Place::Item(_), .. }) = scheme.signature() {
        let inputs = Inputs { item: Some(item), ..Inputs::default() };
        let chunks = signed_chunks(signature, request, inputs).ok()?;
        return Some(Sha256::digest(chunks.concat()).into());
    }
    // One signature vouches for all items, which must not be taken for twins of each other.
    let signed = signed_digest(provider, request)?;
    Some(Sha256::new().chain_update(signed).chain_update(number.to_string()).finalize().into())
}

/// The digest of what is signed, put together as it is signed; none if that cannot be read,
/// and then it was not verified.
pub(crate) fn signed_digest(provider: &Provider, request: &Request<'_>) -> Option<[u8; 32]> {
    let request = &bare(provider, request);
    let scheme = provider.schemes.iter().find(|scheme| is_present(scheme, request))?;
    if let Scheme::Special(special) = scheme {
        return Some(Sha256::digest(special.signed_text(request)?).into());
    }
    let signature = scheme.signature()?;
    let stamp = stamp_text(signature, request).ok()?;
    let inputs = Inputs { stamp: stamp.as_deref(), ..Inputs::default() };
    let chunks = signed_chunks(signature, request, inputs).ok()?;
    Some(Sha256::digest(chunks.concat()).into())
}

fn body_digest(provider: &Provider, body: &[u8]) -> [u8; 32] {
    if provider.volatile.is_empty() {
        return Sha256::digest(body).into();
    }
    let pointers: Vec<&str> = provider.volatile.iter().map(AsRef::as_ref).collect();
    // A body we cannot look into has nothing we could leave out.
    let found = look(body, &pointers).unwrap_or_default();
    let mut spans: Vec<_> = found.into_iter().flatten().map(|raw| raw.span(body)).collect();
    spans.sort_by_key(|span| span.start);
    let mut hash = Sha256::new();
    let mut from = 0;
    for span in spans {
        if span.start >= from {
            hash.update(&body[from..span.start]);
            from = span.end;
        }
    }
    hash.update(&body[from..]);
    hash.finalize().into()
}
