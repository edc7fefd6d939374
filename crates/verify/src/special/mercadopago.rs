//! Mercado Pago's scheme: an HMAC over a manifest of the object's id in the query, the id of the
//! request and a time. What is missing is left out; the body is not covered at all.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::mac::{Key, Tag, expectation};
use crate::provider::{Encoding, TimeFormat};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::time;
use crate::verify::{header, labelled};

use super::{Proof, Trial};

pub(crate) const SIGNATURE: &str = "x-signature";
pub(crate) const OBJECT: &str = "data.id";
const REQUEST_ID: &str = "x-request-id";
const LEN: Option<usize> = Some(32);

pub(crate) fn verify(trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let value = header(trial.request.headers, SIGNATURE)?;
    let mut given = labelled(value, ",", "v1");
    let (Some(first), None) = (given.next(), given.next()) else {
        return Err(Rejection::NoKnownScheme { label: Cow::Borrowed("v1") });
    };
    let given = Tag::decode(first, Encoding::Hex, LEN).ok_or_else(|| {
        Rejection::MalformedSignature { expected: expectation(Encoding::Hex, LEN) }
    })?;
    let parts = Parts::read(trial.request)?;
    // Ids with letters are signed in lower case, whatever the query says.
    let manifests = [parts.manifest(false), parts.manifest(true)];
    let made = |key: &Key| {
        manifests
            .iter()
            .fold(false, |found, text| key.mac([text.as_bytes()]).matches(&given) | found)
    };
    let found = trial.keys.iter().find(|(_, key)| made(key));
    let (number, _) = found.ok_or(Rejection::SignatureMismatch { tried: trial.keys.len() })?;
    Ok((*number, time::parse(parts.time, TimeFormat::Seconds)))
}

pub(crate) fn sign(key: &Key, draft: &mut Draft, at: Timestamp) -> Option<()> {
    let time = time::print(at, TimeFormat::Seconds);
    draft.set(SIGNATURE, &format!("ts={time}")).then_some(())?;
    let manifest = Parts::read(&draft.request()).ok()?.manifest(true);
    let tag = key.mac([manifest.as_bytes()]).encode(Encoding::Hex);
    draft.set(SIGNATURE, &format!("ts={time},v1={tag}")).then_some(())
}

/// All that is signed, in the one spelling of two that verify.
pub(crate) fn signed_text(request: &Request<'_>) -> Option<Vec<u8>> {
    Some(Parts::read(request).ok()?.manifest(true).into_bytes())
}

struct Parts<'a> {
    object: Option<Cow<'a, str>>,
    request_id: Option<&'a str>,
    time: &'a str,
}

impl<'a> Parts<'a> {
    fn read(request: &Request<'a>) -> Result<Parts<'a>, Rejection> {
        let bad = |name, why| Rejection::MalformedHeader { name: Cow::Borrowed(name), why };
        let mut times = labelled(header(request.headers, SIGNATURE)?, ",", "ts");
        let missing = || Rejection::MissingTimestamp { place: Cow::Borrowed("x-signature ts=") };
        let (Some(time), None) = (times.next(), times.next()) else { return Err(missing()) };
        let mut objects = request.query(OBJECT);
        let object = objects.next().filter(|object| !object.is_empty());
        if objects.next().is_some() {
            return Err(Rejection::RepeatedHeader { name: Cow::Borrowed(OBJECT) });
        }
        let request_id = match request.headers.contains_key(REQUEST_ID) {
            true => Some(header(request.headers, REQUEST_ID)?),
            false => None,
        };
        // With these inside, one part could pass for several.
        let texts = [object.as_deref(), request_id, Some(time)];
        if texts.into_iter().flatten().any(|text| text.contains([';', ':'])) {
            return Err(bad(SIGNATURE, "for a part that holds a separator"));
        }
        Ok(Parts { object, request_id, time })
    }

    fn manifest(&self, lower_case: bool) -> String {
        let mut text = String::new();
        if let Some(object) = &self.object {
            let object = match lower_case {
                true => Cow::Owned(object.to_lowercase()),
                false => Cow::Borrowed(object.as_ref()),
            };
            text.push_str(&format!("id:{object};"));
        }
        if let Some(id) = self.request_id {
            text.push_str(&format!("request-id:{id};"));
        }
        text + &format!("ts:{};", self.time)
    }
}
