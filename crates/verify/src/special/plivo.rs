//! Plivo's scheme, version 3: an HMAC over the URL without its query, the sorted query, the sorted
//! form and a nonce.
//!
//! A form is covered as names and values without anything between them, as Twilio's is: `a=bc` and
//! `ab=c` have one signature. The query is covered decoded, so `&` inside a value and between two
//! values are the same. What has one signature is therefore one content, and ids in the form or
//! the query count as unsigned.

use crate::mac::{Key, Tag, expectation};
use crate::provider::Encoding;
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::verify::{SIGNATURES_MAX, header};

use super::{Pairs, Trial, form_pairs};

pub(crate) const SIGNATURE: &str = "x-plivo-signature-v3";
const NONCE: &str = "x-plivo-signature-v3-nonce";
const LEN: Option<usize> = Some(32);

pub(crate) fn verify(trial: &Trial<'_>) -> Result<usize, Rejection> {
    let request = trial.request;
    let given: Vec<&str> = header(request.headers, SIGNATURE)?.split(',').map(str::trim).collect();
    if given.len() > SIGNATURES_MAX {
        return Err(Rejection::TooManySignatures { limit: SIGNATURES_MAX });
    }
    let decode = |text: &&str| Tag::decode(text, Encoding::Base64, LEN);
    let given: Vec<Tag> = given.iter().filter_map(decode).collect();
    if given.is_empty() {
        let expected = expectation(Encoding::Base64, LEN);
        return Err(Rejection::MalformedSignature { expected });
    }
    let text = text(request, header(request.headers, NONCE)?)?;
    let made = |key: &Key| {
        let tag = key.mac([text.as_bytes()]);
        given.iter().any(|given| given.matches(&tag))
    };
    let found = trial.keys.iter().find(|(_, key)| made(key));
    found.map(|(number, _)| *number).ok_or(Rejection::SignatureMismatch { tried: trial.keys.len() })
}

pub(crate) fn sign(key: &Key, draft: &mut Draft) -> Option<()> {
    if !draft.headers.contains_key(NONCE) {
        draft.set(NONCE, "12345678901234567890").then_some(())?;
    }
    let nonce = header(&draft.headers, NONCE).ok()?.to_owned();
    let tag = key.mac([text(&draft.request(), &nonce).ok()?.as_bytes()]);
    draft.set(SIGNATURE, &tag.encode(Encoding::Base64)).then_some(())
}

/// All that is signed.
pub(crate) fn signed_text(request: &Request<'_>) -> Option<Vec<u8>> {
    Some(text(request, header(request.headers, NONCE).ok()?).ok()?.into_bytes())
}

/// The form and the query as they are signed. The nonce is not content: a retry has another.
pub(crate) fn content(request: &Request<'_>) -> Option<Vec<u8>> {
    Some(text(request, "").ok()?.into_bytes())
}

fn text(request: &Request<'_>, nonce: &str) -> Result<String, Rejection> {
    let url = request.url.split('#').next().unwrap_or_default();
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let query: Vec<String> =
        sorted(query.as_bytes())?.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let query = query.join("&");
    // What is no form is read as one too, so that no body is accepted uncovered.
    let form: String =
        sorted(request.body)?.iter().map(|(name, value)| format!("{name}{value}")).collect();
    let mark = if query.is_empty() && form.is_empty() { "" } else { "?" };
    let dot = if query.is_empty() || form.is_empty() { "" } else { "." };
    Ok(format!("{base}{mark}{query}{dot}{form}.{nonce}"))
}

fn sorted(pairs: &[u8]) -> Result<Pairs<'_>, Rejection> {
    let mut pairs = form_pairs(pairs)?;
    pairs.sort();
    Ok(pairs)
}
