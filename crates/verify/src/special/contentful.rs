//! Contentful's scheme: an HMAC over a canonical request of method, path, the headers that the
//! request lists, and the body, each on a line of its own.
//!
//! The request says which headers are signed. That list and the time must be among them: then
//! neither can be changed, and no other list has the same canonical text.

use std::borrow::Cow;

use http::HeaderName;
use jiff::Timestamp;

use crate::mac::{Key, Tag, expectation};
use crate::provider::{Encoding, TimeFormat};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::time;
use crate::verify::{check_age, header};

use super::{Proof, Trial};

pub(crate) const SIGNATURE: &str = "x-contentful-signature";
const LISTED: &str = "x-contentful-signed-headers";
const TIME: &str = "x-contentful-timestamp";
const LEN: Option<usize> = Some(32);
const HEADERS_MAX: usize = 64;

/// As in Contentful's own toolkit.
const TOLERANCE_SECS: u32 = 30;

pub(crate) fn verify(trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let request = trial.request;
    let given = Tag::decode(header(request.headers, SIGNATURE)?, Encoding::Hex, LEN);
    let expected = expectation(Encoding::Hex, LEN);
    let given = given.ok_or(Rejection::MalformedSignature { expected })?;
    let stamp = match header(request.headers, TIME) {
        Err(Rejection::MissingHeader { name }) => {
            return Err(Rejection::MissingTimestamp { place: name });
        }
        stamp => stamp?,
    };
    let head = head(request)?;
    let made = |key: &Key| key.mac([head.as_bytes(), request.body]).matches(&given);
    let found = trial.keys.iter().find(|(_, key)| made(key));
    let (number, _) = found.ok_or(Rejection::SignatureMismatch { tried: trial.keys.len() })?;
    let signed_at = time::parse(stamp, TimeFormat::Milliseconds)
        .ok_or(Rejection::BadTimestamp { place: Cow::Borrowed(TIME) })?;
    check_age(signed_at, trial.received_at, TOLERANCE_SECS)?;
    Ok((*number, Some(signed_at)))
}

pub(crate) fn sign(key: &Key, draft: &mut Draft, at: Timestamp) -> Option<()> {
    draft.set(TIME, &time::print(at, TimeFormat::Milliseconds)).then_some(())?;
    let also = ["content-type", "x-contentful-topic", "x-contentful-idempotency-key"];
    let there = also.iter().filter(|name| draft.headers.contains_key(**name));
    let names: Vec<&str> = there.copied().chain([LISTED, TIME]).collect();
    draft.set(LISTED, &names.join(",")).then_some(())?;
    let head = head(&draft.request()).ok()?;
    let tag = key.mac([head.as_bytes(), &draft.body]);
    draft.set(SIGNATURE, &tag.encode(Encoding::Hex)).then_some(())
}

/// All that is signed before the body.
fn head(request: &Request<'_>) -> Result<String, Rejection> {
    let bad = |why| Rejection::MalformedHeader { name: Cow::Borrowed(LISTED), why };
    let mut listed = Vec::new();
    for name in header(request.headers, LISTED)?.split(',') {
        let name = HeaderName::from_bytes(name.trim().as_bytes());
        listed.push(name.map_err(|_| bad("not a list of headers"))?);
    }
    if listed.len() > HEADERS_MAX {
        return Err(bad("too long"));
    }
    if ![LISTED, TIME].iter().all(|needed| listed.iter().any(|name| name == needed)) {
        return Err(bad("without the time and itself"));
    }
    listed.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    let line = |name: &HeaderName| {
        Ok(format!("{name}:{}", header(request.headers, name.as_str())?.trim()))
    };
    let headers: Vec<String> = listed.iter().map(line).collect::<Result<_, Rejection>>()?;
    let method = request.method.to_ascii_uppercase();
    Ok(format!("{method}\n{}\n{}\n", path(request), headers.join(";")))
}

/// The path, and the query escaped twice: once as a whole, then as a part of the address.
fn path(request: &Request<'_>) -> String {
    let written = request.path_and_query();
    let (path, query) = written.split_once('?').unwrap_or((written, ""));
    let query = escape(query, b"-_.!~*'()");
    let mark = if query.is_empty() { "" } else { "?" };
    escape(&format!("{path}{mark}{query}"), b"-_.!~*'();,/?:@&=+$#")
}

fn escape(text: &str, plain: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
