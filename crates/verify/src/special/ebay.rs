//! eBay: an ECDSA signature over the body, inside JSON that is base64 in a header.
//!
//! The JSON names the key and the algorithm. Neither is believed: the keys are the source's, and
//! the algorithm is the only one that eBay uses.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::asymmetric::Pair;
use crate::mac::{Key, Message, Tag, expectation};
use crate::provider::{Algorithm, Encoding};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::secret::BadSecret;
use crate::verify::header;

pub(crate) const SIGNATURE: &str = "x-ebay-signature";

const ALGORITHM: Algorithm = Algorithm::EcdsaP256Sha1;

#[derive(Deserialize)]
struct Sent {
    alg: String,
    signature: String,
    digest: String,
}

/// A public key as eBay serves it.
#[derive(Deserialize)]
struct Served<'a> {
    key: Cow<'a, str>,
}

/// A public key in any form, or the whole answer of eBay's `getPublicKey`.
pub(crate) fn key(number: usize, text: &str) -> Result<Option<Key>, BadSecret> {
    let served = serde_json::from_str::<Served<'_>>(text).ok().map(|served| served.key);
    let pair = Pair::decode(ALGORITHM, number, served.as_deref().unwrap_or(text))?;
    Ok(Some(Key::Pair(Arc::new(pair))))
}

pub(crate) fn verify(keys: &[(usize, Key)], request: &Request<'_>) -> Result<usize, Rejection> {
    let expected = "base64 of JSON with a signature";
    let malformed = || Rejection::MalformedSignature { expected };
    let sent = STANDARD.decode(header(request.headers, SIGNATURE)?).map_err(|_| malformed())?;
    let sent: Sent = serde_json::from_slice(&sent).map_err(|_| malformed())?;
    if !sent.alg.eq_ignore_ascii_case("ecdsa") || !sent.digest.eq_ignore_ascii_case("sha1") {
        return Err(Rejection::UnknownAlgorithm { name: Cow::Borrowed(SIGNATURE) });
    }
    let expected = expectation(Encoding::Base64, None);
    let given = Tag::decode(&sent.signature, Encoding::Base64, None)
        .ok_or(Rejection::MalformedSignature { expected })?;
    let body = Message::new(vec![Cow::Borrowed(request.body)]);
    let made = keys.iter().find(|(_, key)| key.made_any(std::slice::from_ref(&given), &body));
    made.map(|(number, _)| *number).ok_or(Rejection::SignatureMismatch { tried: keys.len() })
}

pub(crate) fn sign(key: &Key, draft: &mut Draft) -> Option<()> {
    let tag = key.sign(&[Cow::Borrowed(draft.body.as_slice())])?;
    let sent = serde_json::json!({
        "alg": "ecdsa",
        "kid": "00000000-0000-4000-8000-000000000000",
        "signature": tag.encode(Encoding::Base64),
        "digest": "SHA1",
    });
    draft.set(SIGNATURE, &STANDARD.encode(sent.to_string())).then_some(())
}
