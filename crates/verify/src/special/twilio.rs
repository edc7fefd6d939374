//! Twilio's own scheme: an HMAC over the URL and the sorted form parameters.
//!
//! A form body is covered as names and values without anything between them, so
//! `a=bc` and `ab=c` have one signature; that is Twilio's design. What has one signature
//! is therefore one content here, and ids in a form count as unsigned. Other bodies are
//! covered by their hash in the query, `bodySHA256`, which the URL's signature seals.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use crate::mac::{Key, Tag, expectation};
use crate::provider::{Algorithm, Encoding};
use crate::rejection::Rejection;
use crate::request::{Draft, Request, is_form_type};
use crate::verify::header;

use super::{Pairs, form_pairs};

pub(crate) const SIGNATURE: &str = "x-twilio-signature";
const SETTINGS: &str = "x-twilio-webhooks-signature-settings";
pub(crate) const BODY_HASH: &str = "bodySHA256";

pub(crate) fn verify(keys: &[(usize, Key)], request: &Request<'_>) -> Result<usize, Rejection> {
    let algorithm = algorithm(request)?;
    let len = algorithm.signature_len();
    let expected = expectation(Encoding::Base64, len);
    let given = Tag::decode(header(request.headers, SIGNATURE)?, Encoding::Base64, len)
        .ok_or(Rejection::MalformedSignature { expected })?;
    let params = params(request)?;
    let urls = [Some(Cow::Borrowed(request.url)), other_port(request.url).map(Cow::Owned)];
    for (secret, key) in keys {
        for url in urls.iter().flatten() {
            if key_for(key, algorithm).mac(chunks(url, &params)).matches(&given) {
                return Ok(*secret);
            }
        }
    }
    Err(Rejection::SignatureMismatch { tried: keys.len() })
}

/// Signs as Twilio does with the account's auth token: SHA-1 unless the draft names another,
/// base64, and for a body that is no form its hash in the query.
pub(crate) fn sign(key: &Key, draft: &mut Draft) -> Option<()> {
    if !covered_as_form(&draft.request()) && !draft.body.is_empty() {
        let mark = if draft.url.contains('?') { '&' } else { '?' };
        let hash = hex::encode(Sha256::digest(&draft.body));
        draft.url.push_str(&format!("{mark}{BODY_HASH}={hash}"));
    }
    let params = params(&draft.request()).ok()?;
    let algorithm = algorithm(&draft.request()).ok()?;
    let tag = key_for(key, algorithm).mac(chunks(&draft.url, &params));
    draft.set(SIGNATURE, &tag.encode(Encoding::Base64)).then_some(())
}

/// SHA-1, unless the request names SHA-256. The request may choose here because
/// both need the secret and are safe inside an HMAC.
fn algorithm(request: &Request<'_>) -> Result<Algorithm, Rejection> {
    if !request.headers.contains_key(SETTINGS) {
        return Ok(Algorithm::HmacSha1);
    }
    let mut named = crate::verify::labelled(header(request.headers, SETTINGS)?, ",", "algorithm");
    match (named.next(), named.next()) {
        (Some("HMAC_SHA256"), None) => Ok(Algorithm::HmacSha256),
        (Some("HMAC_SHA1"), None) => Ok(Algorithm::HmacSha1),
        _ => Err(Rejection::UnknownAlgorithm { name: Cow::Borrowed(SETTINGS) }),
    }
}

fn key_for(key: &Key, algorithm: Algorithm) -> &Key {
    match (key, algorithm) {
        (Key::Several(keys), Algorithm::HmacSha256) => keys.last().unwrap_or(key),
        (Key::Several(keys), _) => keys.first().unwrap_or(key),
        (other, _) => other,
    }
}

fn chunks<'a>(url: &'a str, params: &'a [(Cow<'a, str>, Cow<'a, str>)]) -> Vec<&'a [u8]> {
    let mut chunks = vec![url.as_bytes()];
    chunks.extend(params.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    chunks
}

/// The parameters that are signed beside the URL: none where the URL holds the hash
/// of the body, which is then checked, else those of the form.
fn params<'a>(request: &Request<'a>) -> Result<Pairs<'a>, Rejection> {
    if let Some(hash) = body_hash(request.url)? {
        let right = hex::encode(Sha256::digest(request.body)) == hash;
        return if right { Ok(Vec::new()) } else { Err(Rejection::BodyHashMismatch) };
    }
    if request.body.is_empty() {
        return Ok(Vec::new());
    }
    if !covered_as_form(request) {
        return Err(Rejection::MissingBodyHash { name: BODY_HASH });
    }
    let mut params: Pairs<'a> = form_pairs(request.body)?;
    params.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()).then_with(|| a.1.cmp(&b.1)));
    params.dedup();
    Ok(params)
}

/// The parameters of a form exactly as they are signed; none if the body is covered by its
/// hash, or by nothing.
pub(crate) fn form_text(request: &Request<'_>) -> Option<Vec<u8>> {
    match body_hash(request.url) {
        Ok(None) => Some(chunks("", &params(request).ok()?).concat()),
        Ok(Some(_)) | Err(_) => None,
    }
}

/// All that is signed, with the URL in one of the two forms that are accepted.
pub(crate) fn signed_text(request: &Request<'_>) -> Option<Vec<u8>> {
    let params = params(request).ok()?;
    let other = other_port(request.url);
    // The shorter one has no port.
    let url = other.as_deref().filter(|url| url.len() < request.url.len());
    Some(chunks(url.unwrap_or(request.url), &params).concat())
}

/// What starts like JSON is read as JSON, so the characters of a form must not vouch for it: put
/// in another order, those of a genuine form may be JSON that its sender never wrote.
fn covered_as_form(request: &Request<'_>) -> bool {
    let is_form = request.headers.get(http::header::CONTENT_TYPE).is_none_or(is_form_type);
    is_form && request.is_form()
}

fn body_hash(url: &str) -> Result<Option<Cow<'_, str>>, Rejection> {
    let Some((_, query)) = url.split_once('?') else { return Ok(None) };
    let query = query.split('#').next().unwrap_or_default();
    let mut hashes = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == BODY_HASH)
        .map(|(_, value)| value);
    match (hashes.next(), hashes.next()) {
        (hash, None) => Ok(hash),
        (_, Some(_)) => Err(Rejection::BodyHashMismatch),
    }
}

/// The URL with its default port written out, or without the port it has. Twilio
/// signs one or the other depending on the product.
pub(crate) fn other_port(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host_start = authority.rfind('@').map_or(0, |at| at + 1);
    let (user, host) = authority.split_at(host_start);
    // A colon inside brackets belongs to an IPv6 address.
    let colon = host.rfind(':').filter(|&colon| host.rfind(']').is_none_or(|end| end < colon));
    match (colon, scheme) {
        (Some(colon), _) => Some(format!("{scheme}://{user}{}{path}", &host[..colon])),
        (None, "https") => Some(format!("{scheme}://{user}{host}:443{path}")),
        (None, "http") => Some(format!("{scheme}://{user}{host}:80{path}")),
        _ => None,
    }
}
