//! Where a request has its signatures, their time, and whatever else is signed.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue};

use super::{HEADER_BYTES_MAX, SIGNATURES_MAX};
use crate::look::{Raw, look};
use crate::provider::{Place, Signature, Text, ValueKind};
use crate::rejection::Rejection;
use crate::request::Request;

/// The signatures that were sent, without what stands around them.
pub(crate) fn signature_texts<'a>(
    signature: &Signature,
    request: &Request<'a>,
) -> Result<Vec<Cow<'a, str>>, Rejection> {
    let prefix = signature.prefix.as_ref();
    let unprefixed = |text: &'a str| {
        let rest = text.strip_prefix(prefix).map(Cow::Borrowed);
        rest.ok_or_else(|| Rejection::BadPrefix { prefix: signature.prefix.clone() })
    };
    match &signature.place {
        Place::Header(name) => {
            let value = header(request.headers, name)?;
            match signature.separator {
                None => Ok(vec![unprefixed(value)?]),
                Some(separator) => {
                    Ok(separated(value, separator, prefix).into_iter().map(Cow::Borrowed).collect())
                }
            }
        }
        Place::Repeated(name) => {
            let values = request.headers.get_all(name.as_ref()).iter();
            values.map(|value| unprefixed(header_text(name, value)?)).collect()
        }
        Place::AnyOf(names) => {
            let present = names.iter().filter(|name| request.headers.contains_key(name.as_ref()));
            present.map(|name| unprefixed(header(request.headers, name)?)).collect()
        }
        Place::Numbered(before) => {
            let names = (1..=SIGNATURES_MAX).map(|number| format!("{before}{number}"));
            let present = names.filter(|name| request.headers.contains_key(name));
            present.map(|name| unprefixed(header(request.headers, &name)?)).collect()
        }
        Place::Label { header: name, label, separators } => {
            let found = labelled(header(request.headers, name)?, separators, label);
            Ok(found.filter_map(|text| text.strip_prefix(prefix)).map(Cow::Borrowed).collect())
        }
        Place::First { header: name, separator } => {
            let mut values = header(request.headers, name)?.split(*separator);
            Ok(values.next().into_iter().map(|text| Cow::Borrowed(text.trim())).collect())
        }
        Place::Rest { header: name, separator } => {
            let values = header(request.headers, name)?.split(*separator).skip(1);
            Ok(values.map(|text| Cow::Borrowed(text.trim())).collect())
        }
        Place::Query(name) => one(request.query(name), name).map(|text| vec![text]),
        Place::Form(name) => one(request.form(name), name).map(|text| vec![text]),
        Place::Json(pointer) | Place::Item(pointer) => {
            Ok(vec![json_text(request, pointer)?.ok_or(Rejection::UnreadableBody)?])
        }
    }
}

/// The only value there is.
pub(crate) fn one<'a>(
    mut values: impl Iterator<Item = Cow<'a, str>>,
    name: &Text,
) -> Result<Cow<'a, str>, Rejection> {
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(Rejection::MissingHeader { name: name.clone() }),
        (Some(_), Some(_)) => Err(Rejection::RepeatedHeader { name: name.clone() }),
    }
}

/// The values after `prefix` in a list such as `v1,abc v1,def`. A comma before the
/// separator is dropped too: Supabase Auth joins with both.
pub(crate) fn separated<'a>(value: &'a str, separator: char, prefix: &str) -> Vec<&'a str> {
    let items = value.split(separator).map(|item| item.trim().trim_end_matches(','));
    items.filter_map(|item| item.strip_prefix(prefix)).filter(|item| !item.is_empty()).collect()
}

/// The values of `label` in a list such as `t=1,v1=ab,v1=cd`. The text of a header is ASCII, so
/// it is cut between bytes.
pub(crate) fn labelled<'a>(
    value: &'a str,
    separators: &str,
    label: &str,
) -> impl Iterator<Item = &'a str> {
    let is_between = move |byte: u8| separators.bytes().any(|separator| separator == byte);
    let mut rest = Some(value);
    let items = std::iter::from_fn(move || {
        let text = rest?;
        let end = text.bytes().position(is_between);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    });
    items.filter_map(move |item| {
        let (name, value) = item.trim().split_once('=')?;
        (name == label).then_some(value)
    })
}

/// The timestamp as sent, where it must be known before hashing. One inside the
/// signed body is read only after the signature was found right.
pub(crate) fn stamp_text<'a>(
    signature: &Signature,
    request: &Request<'a>,
) -> Result<Option<Cow<'a, str>>, Rejection> {
    let Some(stamp) = &signature.timestamp else { return Ok(None) };
    match &stamp.place {
        Place::Header(name) => match header(request.headers, name) {
            Err(Rejection::MissingHeader { name }) => {
                Err(Rejection::MissingTimestamp { place: name })
            }
            value => value.map(|value| Some(Cow::Borrowed(value))),
        },
        Place::Label { header: name, label, separators } => {
            let place = || Cow::Owned(format!("{name} {label}="));
            let mut found = labelled(header(request.headers, name)?, separators, label);
            let first =
                found.next().ok_or_else(|| Rejection::MissingTimestamp { place: place() })?;
            // Where pairs of time and signature are sent, each brings the time along.
            match found.all(|other| other == first && separators.len() > 1) {
                true => Ok(Some(Cow::Borrowed(first))),
                false => Err(Rejection::BadTimestamp { place: place() }),
            }
        }
        Place::First { header: name, separator } => {
            let first = header(request.headers, name)?.split(*separator).next();
            Ok(first.map(|text| Cow::Borrowed(text.trim())))
        }
        Place::Form(name) => match one(request.form(name), name) {
            Err(_) => Err(Rejection::MissingTimestamp { place: name.clone() }),
            value => value.map(Some),
        },
        _ => Ok(None),
    }
}

/// The one value of a header, as text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Rejection> {
    let owned = || Cow::Owned(name.to_owned());
    let mut values = headers.get_all(name).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value,
        (None, _) => return Err(Rejection::MissingHeader { name: owned() }),
        (Some(_), Some(_)) => return Err(Rejection::RepeatedHeader { name: owned() }),
    };
    header_text(name, value)
}

/// A value that came under a name, as text.
pub(crate) fn header_text<'a>(name: &str, value: &'a HeaderValue) -> Result<&'a str, Rejection> {
    let owned = || Cow::Owned(name.to_owned());
    if value.len() > HEADER_BYTES_MAX {
        return Err(Rejection::MalformedHeader { name: owned(), why: "too long" });
    }
    let why = "not plain text";
    let text = value.to_str().map_err(|_| Rejection::MalformedHeader { name: owned(), why })?;
    if text.trim().is_empty() {
        return Err(Rejection::MissingHeader { name: owned() });
    }
    Ok(text)
}

/// The text of a JSON value in the body, needed to find the signature or its time.
pub(crate) fn json_text<'a>(
    request: &Request<'a>,
    pointer: &str,
) -> Result<Option<Cow<'a, str>>, Rejection> {
    pointed(request.body, pointer)
}

/// The text of a JSON value that must be of one kind.
pub(crate) fn text_as(value: Option<Raw<'_>>, kind: ValueKind) -> Result<Cow<'_, str>, Rejection> {
    let raw = value.filter(|raw| !raw.is_null());
    let written = raw.map(Raw::written).unwrap_or_default();
    let is_string = written.starts_with('"');
    let text = raw.and_then(Raw::signed_text).unwrap_or_default();
    let holds = match kind {
        ValueKind::Integer => {
            !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit())
        }
        ValueKind::Boolean => matches!(written, "true" | "false"),
        ValueKind::Time => is_string && begins_with_time(text.as_bytes()),
        ValueKind::Currency => {
            is_string && text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
        }
        ValueKind::Text => is_string || raw.is_none(),
    };
    if holds { Ok(text) } else { Err(Rejection::UnreadableBody) }
}

/// Whether text begins like `2026-01-02T03:04:05`.
fn begins_with_time(text: &[u8]) -> bool {
    const PATTERN: &[u8] = b"0000-00-00T00:00:00";
    let fits = |(byte, pattern): (&u8, &u8)| match pattern {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() >= PATTERN.len() && text.iter().zip(PATTERN).all(fits)
}

pub(crate) fn pointed<'a>(
    json: &'a [u8],
    pointer: &str,
) -> Result<Option<Cow<'a, str>>, Rejection> {
    let found = look(json, &[pointer]).map_err(|_| Rejection::UnreadableBody)?;
    Ok(found.into_iter().next().flatten().and_then(Raw::signed_text))
}
