//! What a signature covers, put together.

use std::borrow::Cow;

use super::places::{header, one, text_as};
use crate::look::{Raw, look};
use crate::mac::hash;
use crate::provider::{Part, Signature};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::{Keyring, Secret};

/// What a signature may cover beside the request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Inputs<'a> {
    pub(crate) keyring: Option<&'a Keyring>,
    pub(crate) secret: Option<&'a Secret>,
    pub(crate) stamp: Option<&'a str>,
    /// The item of a batch that has a signature of its own.
    pub(crate) item: Option<&'a [u8]>,
}

/// What is signed, in pieces, so that the body is never copied.
pub(crate) fn signed_chunks<'a>(
    signature: &'a Signature,
    request: &Request<'a>,
    inputs: Inputs<'a>,
) -> Result<Vec<Cow<'a, [u8]>>, Rejection> {
    chunks(&signature.signed, request, inputs)
}

/// The parts of a request. However many are values of the JSON in it, that is looked over once:
/// the request is not verified yet.
pub(crate) fn chunks<'a>(
    parts: &'a [Part],
    request: &Request<'a>,
    inputs: Inputs<'a>,
) -> Result<Vec<Cow<'a, [u8]>>, Rejection> {
    let of_body = parts.iter().filter_map(|part| match part {
        Part::Json(pointer) | Part::JsonAs(pointer, _) | Part::JsonRaw(pointer) => {
            Some(pointer.as_ref())
        }
        _ => None,
    });
    let of_item = parts.iter().filter_map(|part| match part {
        Part::Item(pointer) => Some(pointer.as_ref()),
        _ => None,
    });
    let mut of_body = values(Some(request.body), &of_body.collect::<Vec<_>>())?.into_iter();
    let mut of_item = values(inputs.item, &of_item.collect::<Vec<_>>())?.into_iter();
    let chunk = |part: &'a Part| {
        let value = match part {
            Part::Json(_) | Part::JsonAs(..) | Part::JsonRaw(_) => of_body.next().flatten(),
            Part::Item(_) => of_item.next().flatten(),
            _ => None,
        };
        chunk(part, value, request, inputs)
    };
    parts.iter().map(chunk).collect()
}

/// The values at pointers into JSON, in their order.
fn values<'a>(
    json: Option<&'a [u8]>,
    pointers: &[&str],
) -> Result<Vec<Option<Raw<'a>>>, Rejection> {
    if pointers.is_empty() {
        return Ok(Vec::new());
    }
    let json = json.ok_or(Rejection::UnreadableBody)?;
    look(json, pointers).map_err(|_| Rejection::UnreadableBody)
}

/// One part; `value` is that of the JSON which it names.
fn chunk<'a>(
    part: &'a Part,
    value: Option<Raw<'a>>,
    request: &Request<'a>,
    inputs: Inputs<'a>,
) -> Result<Cow<'a, [u8]>, Rejection> {
    Ok(match part {
        Part::Timestamp => Cow::Borrowed(inputs.stamp.unwrap_or_default().as_bytes()),
        Part::Body => Cow::Borrowed(request.body),
        Part::BodyHash { algorithm, encoding } => {
            Cow::Owned(hash(*algorithm, [request.body]).encode(*encoding).into_bytes())
        }
        Part::BodyCrc32 => Cow::Owned(crc32fast::hash(request.body).to_string().into_bytes()),
        Part::Url => Cow::Borrowed(request.url.as_bytes()),
        Part::PathAndQuery => Cow::Borrowed(request.path_and_query().as_bytes()),
        Part::Method => Cow::Owned(request.method.to_ascii_uppercase().into_bytes()),
        Part::Text(text) => Cow::Borrowed(text.as_bytes()),
        Part::Header(name) => Cow::Borrowed(header(request.headers, name)?.as_bytes()),
        Part::Query(name) => bytes(one(request.query(name), name)?),
        Part::Form(name) => bytes(one(request.form(name), name)?),
        Part::Json(_) | Part::Item(_) => {
            bytes(value.and_then(Raw::signed_text).unwrap_or_default())
        }
        Part::JsonAs(_, kind) => bytes(text_as(value, *kind)?),
        Part::JsonRaw(_) => {
            Cow::Borrowed(value.ok_or(Rejection::UnreadableBody)?.written().as_bytes())
        }
        Part::Secret => {
            Cow::Borrowed(inputs.secret.map(Secret::expose).unwrap_or_default().as_bytes())
        }
        Part::Setting(key) => {
            let said = inputs.keyring.and_then(|keyring| keyring.setting(key));
            Cow::Borrowed(said.unwrap_or_default().as_bytes())
        }
    })
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::look::LOOKS;
    use crate::provider::Scheme;

    /// Paymob signs twenty values, and Adyen eight of each item.
    #[test]
    fn json_is_looked_over_once_whatever_is_signed_of_it() {
        let headers = http::HeaderMap::new();
        let request = Request { method: "POST", url: "/", headers: &headers, body: b"{}" };
        let schemes = catalogue::ALL.iter().flat_map(|provider| provider.schemes.iter());
        for signature in schemes.filter_map(Scheme::signature) {
            LOOKS.set(0);
            let inputs = Inputs { item: Some(b"{}"), ..Inputs::default() };
            let _ = signed_chunks(signature, &request, inputs);
            assert!(LOOKS.get() <= 1, "{:?}", signature.signed);
        }
        let text = br#"{"a":"1","b":true}"#;
        let request = Request { body: text, ..request };
        let parts = ["/b", "/missing", "/a", "/a"].map(|pointer| Part::Json(pointer.into()));
        let found = chunks(&parts, &request, Inputs::default()).unwrap();
        assert_eq!(found, [&b"true"[..], b"", b"1", b"1"]);
    }
}
