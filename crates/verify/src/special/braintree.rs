//! Braintree's scheme: pairs of a public key and the HMAC of the payload, in a form field.
//!
//! The payload is base64 that may or may not end its last line, so two spellings have one
//! signature; the rest of the form is covered by nothing. What is signed is the content.

use std::borrow::Cow;

use crate::mac::{Key, Tag, expectation};
use crate::provider::Encoding;
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::sign::remove_form_field;
use crate::verify::SIGNATURES_MAX;

use super::{Signer, Trial};

pub(crate) const SIGNATURE: &str = "bt_signature";
pub(crate) const PAYLOAD: &str = "bt_payload";
const LEN: Option<usize> = Some(20);

pub(crate) fn verify(trial: &Trial<'_>) -> Result<usize, Rejection> {
    let pairs = one(trial.request, SIGNATURE)?;
    let payload = one(trial.request, PAYLOAD)?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\n".contains(&byte);
    if !payload.bytes().all(is_base64) {
        return Err(Rejection::UnreadableBody);
    }
    // Those made with other keys of the account are beside ours.
    let ours = trial.keyring.setting("public_key");
    let pairs: Vec<&str> = pairs
        .split('&')
        .filter_map(|pair| pair.split_once('|'))
        .filter(|(public, _)| ours.is_none_or(|ours| ours == *public))
        .map(|(_, signature)| signature)
        .take(SIGNATURES_MAX + 1)
        .collect();
    if pairs.is_empty() {
        return Err(Rejection::NoKnownScheme { label: Cow::Borrowed(SIGNATURE) });
    }
    if pairs.len() > SIGNATURES_MAX {
        return Err(Rejection::TooManySignatures { limit: SIGNATURES_MAX });
    }
    let decode = |text: &&str| Tag::decode(text, Encoding::Hex, LEN);
    let given: Vec<Tag> = pairs.iter().filter_map(decode).collect();
    if given.is_empty() {
        let expected = expectation(Encoding::Hex, LEN);
        return Err(Rejection::MalformedSignature { expected });
    }
    let made = |key: &Key| {
        let tags = [key.mac([payload.as_bytes()]), key.mac([payload.as_bytes(), b"\n"])];
        given.iter().any(|given| given.matches(&tags[0]) | given.matches(&tags[1]))
    };
    let found = trial.keys.iter().find(|(_, key)| made(key));
    found.map(|(number, _)| *number).ok_or(Rejection::SignatureMismatch { tried: trial.keys.len() })
}

/// Signs in place of the pairs that are there. A handler looks for that of its own public key, so
/// each name is kept; without any it is the source's, or one that is made up.
pub(crate) fn sign(signer: &Signer<'_>, draft: &mut Draft) -> Option<()> {
    let ours = signer.keyring.setting("public_key");
    let old = one(&draft.request(), SIGNATURE).map(Cow::into_owned).unwrap_or_default();
    let old = old.split('&').filter_map(|pair| pair.split_once('|')).map(|(name, _)| name);
    let mut names: Vec<&str> = match ours {
        Some(ours) => vec![ours],
        None => old.take(SIGNATURES_MAX).collect(),
    };
    if names.is_empty() {
        names.push("sample_public_key");
    }
    let payload = one(&draft.request(), PAYLOAD).ok()?.into_owned();
    let tag = signer.key.mac([payload.as_bytes()]).encode(Encoding::Hex);
    let pairs: Vec<String> = names.iter().map(|name| format!("{name}|{tag}")).collect();
    remove_form_field(draft, SIGNATURE);
    let field = form_urlencoded::Serializer::new(String::new())
        .append_pair(SIGNATURE, &pairs.join("&"))
        .finish();
    draft.body.extend_from_slice(format!("&{field}").as_bytes());
    Some(())
}

/// The payload as it is signed, in the one spelling of two that verify.
pub(crate) fn content(request: &Request<'_>) -> Option<Vec<u8>> {
    let payload = one(request, PAYLOAD).ok()?;
    Some(payload.strip_suffix('\n').unwrap_or(&payload).as_bytes().to_vec())
}

/// The only value of a form field.
fn one<'a>(request: &Request<'a>, name: &'static str) -> Result<Cow<'a, str>, Rejection> {
    let mut values = request.form(name);
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(Rejection::MissingHeader { name: Cow::Borrowed(name) }),
        (Some(_), Some(_)) => Err(Rejection::RepeatedHeader { name: Cow::Borrowed(name) }),
    }
}
