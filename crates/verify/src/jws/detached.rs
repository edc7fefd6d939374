//! Payloads that the token leaves out, because they are parts of the request.

use std::borrow::Cow;

use jiff::Timestamp;

use super::compact::{Compact, Header};
use crate::provider::{Part, Text, TimeFormat};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::Keyring;
use crate::time;
use crate::verify::{Inputs, chunks, header};

/// The header that TrueLayer's tokens must cover.
pub(super) const TRUELAYER_TIME: &str = "x-tl-webhook-timestamp";

/// How many headers a token of TrueLayer may cover.
const HEADERS_MAX: usize = 32;

/// The parts of the request, one after the other; most often one.
pub(super) fn parts<'a>(
    parts: &'a [Part],
    request: &Request<'a>,
    keyring: &'a Keyring,
) -> Result<Cow<'a, [u8]>, Rejection> {
    let inputs = Inputs { keyring: Some(keyring), ..Inputs::default() };
    let mut chunks = chunks(parts, request, inputs)?;
    Ok(if chunks.len() == 1 { chunks.remove(0) } else { Cow::Owned(chunks.concat()) })
}

/// TrueLayer's: method and path, a line for each header that the token names, and the body.
pub(super) fn truelayer(token: &Header, request: &Request<'_>) -> Result<Vec<u8>, Rejection> {
    if token.text("tl_version") != Some("2") {
        return Err(Rejection::BadToken { why: "its `tl_version` is not 2" });
    }
    let names = token.text("tl_headers").unwrap_or_default();
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|n| !n.is_empty()).collect();
    if names.len() > HEADERS_MAX {
        return Err(Rejection::BadToken { why: "its `tl_headers` names too many headers" });
    }
    if !names.iter().any(|name| name.eq_ignore_ascii_case(TRUELAYER_TIME)) {
        return Err(Rejection::MissingTimestamp { place: Text::Borrowed(TRUELAYER_TIME) });
    }
    truelayer_text(&names, request)
}

pub(super) fn truelayer_text(names: &[&str], request: &Request<'_>) -> Result<Vec<u8>, Rejection> {
    let path = request.path_and_query().split('?').next().unwrap_or_default();
    let mut signed = format!("{} {path}\n", request.method.to_ascii_uppercase());
    for name in names {
        // The name is signed as the token writes it.
        signed.push_str(&format!("{name}: {}\n", header(request.headers, name)?));
    }
    let mut signed = signed.into_bytes();
    signed.extend_from_slice(request.body);
    Ok(signed)
}

/// When TrueLayer sent it. The header is signed, so one that is no time is the sender's own.
pub(super) fn truelayer_time(request: &Request<'_>) -> Result<Option<Timestamp>, Rejection> {
    let text = header(request.headers, TRUELAYER_TIME)?;
    let place = Text::Borrowed(TRUELAYER_TIME);
    time::parse(text, TimeFormat::Iso8601).map(Some).ok_or(Rejection::BadTimestamp { place })
}

/// The middle of such a token must be empty: what it brought along would be another payload.
pub(super) fn check_empty(token: &Compact<'_>) -> Result<(), Rejection> {
    match token.payload_text {
        "" => Ok(()),
        _ => Err(Rejection::BadToken { why: "it brings a payload of its own" }),
    }
}
