//! Mandrill's scheme: an HMAC over the URL and the sorted form parameters.
//!
//! As in Twilio's, nothing stands between names and values. Here that leaves no room: the events
//! are the JSON of one field, and neither a part of a JSON array nor the text of a string in it,
//! whose quotes are escaped, is a JSON array of objects.

use crate::mac::{Key, Tag, expectation};
use crate::provider::Encoding;
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::verify::header;

use super::{Trial, form_pairs};

pub(crate) const SIGNATURE: &str = "x-mandrill-signature";
const LEN: Option<usize> = Some(20);

pub(crate) fn verify(trial: &Trial<'_>) -> Result<usize, Rejection> {
    // What is no form would be read otherwise than it is signed.
    if !trial.request.is_form() {
        return Err(Rejection::UnreadableBody);
    }
    let given = header(trial.request.headers, SIGNATURE)?;
    let given = Tag::decode(given, Encoding::Base64, LEN).ok_or_else(|| {
        Rejection::MalformedSignature { expected: expectation(Encoding::Base64, LEN) }
    })?;
    let text = signed_text(trial.request)?;
    let found = trial.keys.iter().find(|(_, key)| key.mac([text.as_slice()]).matches(&given));
    found.map(|(number, _)| *number).ok_or(Rejection::SignatureMismatch { tried: trial.keys.len() })
}

pub(crate) fn sign(key: &Key, draft: &mut Draft) -> Option<()> {
    let tag = key.mac([signed_text(&draft.request()).ok()?.as_slice()]);
    draft.set(SIGNATURE, &tag.encode(Encoding::Base64)).then_some(())
}

/// All that is signed.
pub(crate) fn signed_text(request: &Request<'_>) -> Result<Vec<u8>, Rejection> {
    let mut text = request.url.as_bytes().to_vec();
    text.extend(content(request)?);
    Ok(text)
}

/// The form as it is signed.
pub(crate) fn content(request: &Request<'_>) -> Result<Vec<u8>, Rejection> {
    let mut params = form_pairs(request.body)?;
    params.sort();
    let texts = params.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    Ok(texts.collect::<Vec<_>>().concat())
}
