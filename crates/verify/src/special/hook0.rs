//! Hook0's scheme: an HMAC over a time and the body (`v0`), or over a time, the headers that the
//! signature lists, and the body (`v1`). The stronger one decides where both are there.

use std::borrow::Cow;

use http::HeaderName;
use jiff::Timestamp;

use crate::mac::{Key, Tag, expectation};
use crate::provider::{Encoding, TimeFormat};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::time;
use crate::verify::{check_age, header, labelled};

use super::{Proof, Trial};

pub(crate) const SIGNATURE: &str = "x-hook0-signature";
const LEN: Option<usize> = Some(32);
const HEADERS_MAX: usize = 32;
const TOLERANCE_SECS: u32 = 300;

pub(crate) fn verify(trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let request = trial.request;
    let value = header(request.headers, SIGNATURE)?;
    let place = || Cow::Borrowed("x-hook0-signature t=");
    let stamp = one(value, "t")?.ok_or_else(|| Rejection::MissingTimestamp { place: place() })?;
    let (given, head) = match (one(value, "v1")?, one(value, "v0")?) {
        (Some(given), _) => (given, with_headers(request, one(value, "h")?.unwrap_or_default())?),
        (None, Some(given)) => (given, String::new()),
        (None, None) => return Err(Rejection::NoKnownScheme { label: Cow::Borrowed("v1") }),
    };
    let given = Tag::decode(given, Encoding::Hex, LEN).ok_or_else(|| {
        Rejection::MalformedSignature { expected: expectation(Encoding::Hex, LEN) }
    })?;
    let made = |key: &Key| {
        key.mac([stamp.as_bytes(), b".", head.as_bytes(), request.body]).matches(&given)
    };
    let found = trial.keys.iter().find(|(_, key)| made(key));
    let (number, _) = found.ok_or(Rejection::SignatureMismatch { tried: trial.keys.len() })?;
    let signed_at = time::parse(stamp, TimeFormat::Seconds)
        .ok_or_else(|| Rejection::BadTimestamp { place: place() })?;
    check_age(signed_at, trial.received_at, TOLERANCE_SECS)?;
    Ok((*number, Some(signed_at)))
}

pub(crate) fn sign(key: &Key, draft: &mut Draft, at: Timestamp) -> Option<()> {
    let stamp = time::print(at, TimeFormat::Seconds);
    let tag = key.mac([stamp.as_bytes(), b".", &draft.body]).encode(Encoding::Hex);
    draft.set(SIGNATURE, &format!("t={stamp},v0={tag}")).then_some(())
}

/// The names of the headers that are signed, then their values, each with a dot behind it.
fn with_headers(request: &Request<'_>, names: &str) -> Result<String, Rejection> {
    let bad = |why| Rejection::MalformedHeader { name: Cow::Borrowed(SIGNATURE), why };
    let mut values = Vec::new();
    let mut listed = Vec::new();
    for name in names.split(' ').filter(|name| !name.is_empty()) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let name = name.map_err(|_| bad("not a list of headers"))?;
        values.push(header(request.headers, name.as_str())?.to_owned());
        listed.push(name.as_str().to_owned());
    }
    if listed.len() > HEADERS_MAX {
        return Err(bad("too long"));
    }
    Ok(format!("{}.{}.", listed.join(" "), values.join(".")))
}

/// The only value of a label.
fn one<'a>(value: &'a str, label: &str) -> Result<Option<&'a str>, Rejection> {
    let mut values = labelled(value, ",", label);
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Rejection::MalformedHeader {
            name: Cow::Borrowed(SIGNATURE),
            why: "not one value of each kind",
        }),
        (value, None) => Ok(value),
    }
}
