//! Whether a request comes from its provider.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use jiff::Timestamp;

use crate::look::{Raw, look};
use crate::mac::{Key, Tag, expectation};
use crate::provider::{
    Ed25519, Hmac, Layout, Part, Place, Provider, Scheme, Stamp, Text, Token, TokenKind,
};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::Keyring;
use crate::{time, twilio};

/// The longest header that is looked at.
pub(crate) const HEADER_BYTES_MAX: usize = 4096;

/// How many signatures of one request are tried.
pub(crate) const SIGNATURES_MAX: usize = 8;

/// What verification found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which secret of the keyring matched, counted from 0.
    pub secret: usize,
    /// The name of the scheme, such as `hmac-sha256`.
    pub scheme: &'static str,
    /// When it was signed, where the signature covers that.
    pub signed_at: Option<Timestamp>,
}

/// Checks that the request was made with one of our secrets, over exactly these
/// bytes, near `received_at`.
///
/// The first scheme whose signature is present decides: a wrong signature never
/// falls back to a weaker proof beside it. Signatures of several kinds in one list,
/// such as `v1` and `v1a`, are equals: one that is right is enough. The signature is
/// checked before the time, so a rejection [about time](Rejection::is_about_time)
/// means that the request itself is genuine.
///
/// ```
/// use oncebox_verify::{Keyring, Request, Secret, catalogue, verify};
///
/// let github = catalogue::find("github").unwrap();
/// let keyring = Keyring::new(github, vec![Secret::new("It's a Secret to Everybody")])?;
/// let mut headers = http::HeaderMap::new();
/// headers.insert(
///     "x-hub-signature-256",
///     "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17".parse()?,
/// );
/// let request =
///     Request { method: "POST", url: "/in/github", headers: &headers, body: b"Hello, World!" };
///
/// let verified = verify(github, &keyring, &request, jiff::Timestamp::UNIX_EPOCH)?;
/// assert_eq!((verified.secret, verified.scheme), (0, "hmac-sha256"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
    received_at: Timestamp,
) -> Result<Verified, Rejection> {
    let mut missing = Rejection::NoSecret;
    for (number, scheme) in provider.schemes.iter().enumerate().rev() {
        // Going backwards leaves the first scheme's header as the one to report.
        if let (false, Some(name)) = (keyring.keys(number).is_empty(), signature_header(scheme)) {
            missing = Rejection::MissingHeader { name };
        }
    }
    let mut refused: Option<(&Scheme, Rejection)> = None;
    for (number, scheme) in provider.schemes.iter().enumerate() {
        let keys = keyring.keys(number);
        let had_its_say = |(first, _): &(&Scheme, _)| !share_list(first, scheme);
        if keys.is_empty()
            || !is_present(scheme, request.headers)
            || refused.as_ref().is_some_and(had_its_say)
        {
            continue;
        }
        let proof = match scheme {
            Scheme::Hmac(hmac) => verify_layout(hmac.layout(), keys, request, received_at),
            Scheme::Ed25519(ed25519) => verify_layout(ed25519.layout(), keys, request, received_at),
            Scheme::Token(token) => {
                verify_token(token, keys, request.headers).map(|secret| (secret, None))
            }
            Scheme::Twilio => twilio::verify(keys, request).map(|secret| (secret, None)),
        };
        match (proof, &refused) {
            (Ok((secret, signed_at)), _) => {
                return Ok(Verified { secret, scheme: scheme.name(), signed_at });
            }
            (Err(rejection), _) if rejection.is_about_time() => return Err(rejection),
            // A signature that is wrong tells more than one that is not there.
            (Err(rejection), None | Some((_, Rejection::NoKnownScheme { .. }))) => {
                refused = Some((scheme, rejection));
            }
            (Err(_), Some(_)) => {}
        }
    }
    Err(refused.map_or(missing, |(_, rejection)| rejection))
}

/// Whether the signatures of both schemes are in one list.
fn share_list(one: &Scheme, other: &Scheme) -> bool {
    match (one.layout(), other.layout()) {
        (Some(one), Some(other)) => {
            one.separator.is_some()
                && one.separator == other.separator
                && one.signature == other.signature
        }
        _ => false,
    }
}

/// The header in which the scheme's proof is, unless it is in the body.
pub(crate) fn signature_header(scheme: &Scheme) -> Option<Text> {
    match scheme {
        Scheme::Hmac(Hmac { signature, .. }) | Scheme::Ed25519(Ed25519 { signature, .. }) => {
            match signature {
                Place::Header(header) | Place::Label { header, .. } => Some(header.clone()),
                Place::Json(_) => None,
            }
        }
        Scheme::Token(token) => Some(token.header.clone()),
        Scheme::Twilio => Some(Cow::Borrowed(twilio::SIGNATURE)),
    }
}

/// Whether the request carries the proof this scheme looks for.
pub(crate) fn is_present(scheme: &Scheme, headers: &HeaderMap) -> bool {
    let header = match scheme {
        Scheme::Hmac(Hmac { signature, .. }) | Scheme::Ed25519(Ed25519 { signature, .. }) => {
            match signature {
                Place::Header(header) | Place::Label { header, .. } => header,
                Place::Json(_) => return true,
            }
        }
        Scheme::Token(token) => &token.header,
        Scheme::Twilio => twilio::SIGNATURE,
    };
    headers.contains_key(header)
}

fn verify_layout(
    layout: Layout<'_>,
    keys: &[(usize, Key)],
    request: &Request<'_>,
    received_at: Timestamp,
) -> Result<(usize, Option<Timestamp>), Rejection> {
    let given = signatures(layout, request)?;
    let stamp = stamp_text(layout, request)?;
    let chunks = signed_chunks(layout, request, stamp.as_deref())?;
    let secret = keys
        .iter()
        .find(|(_, key)| key.made_any(&given, &chunks))
        .map(|(secret, _)| *secret)
        .ok_or(Rejection::SignatureMismatch { tried: keys.len() })?;
    let signed_at = match layout.timestamp {
        Some(rule) => Some(check_time(rule, stamp.as_deref(), request, received_at)?),
        None => None,
    };
    Ok((secret, signed_at))
}

/// The signatures that were sent, decoded. Those of other versions are passed over.
fn signatures(layout: Layout<'_>, request: &Request<'_>) -> Result<Vec<Tag>, Rejection> {
    let in_body;
    let texts: Vec<&str> = match layout.signature {
        Place::Json(pointer) => {
            in_body = json_text(request, pointer)?.ok_or(Rejection::UnreadableBody)?;
            vec![&in_body]
        }
        Place::Header(name) => {
            let value = header(request.headers, name)?;
            match layout.separator {
                None => {
                    let rest = value.strip_prefix(layout.prefix.as_ref());
                    vec![
                        rest.ok_or_else(|| Rejection::BadPrefix { prefix: layout.prefix.clone() })?,
                    ]
                }
                Some(separator) => separated(value, separator, layout.prefix),
            }
        }
        Place::Label { header: name, label, separator } => {
            let found = labelled(header(request.headers, name)?, *separator, label);
            found.filter_map(|text| text.strip_prefix(layout.prefix.as_ref())).collect()
        }
    };
    if texts.is_empty() {
        let label = match layout.signature {
            Place::Label { label, .. } => label.clone(),
            Place::Header(_) | Place::Json(_) => layout.prefix.clone(),
        };
        return Err(Rejection::NoKnownScheme { label });
    }
    if texts.len() > SIGNATURES_MAX {
        return Err(Rejection::TooManySignatures { limit: SIGNATURES_MAX });
    }
    let decode = |text: &&str| Tag::decode(text, layout.encoding, layout.signature_len);
    let tags: Vec<Tag> = texts.iter().filter_map(decode).collect();
    if tags.is_empty() {
        let expected = expectation(layout.encoding, layout.signature_len);
        return Err(Rejection::MalformedSignature { expected });
    }
    Ok(tags)
}

/// The values after `prefix` in a list such as `v1,abc v1,def`. A comma before the
/// separator is dropped too: Supabase Auth joins with both.
pub(crate) fn separated<'a>(value: &'a str, separator: char, prefix: &str) -> Vec<&'a str> {
    let items = value.split(separator).map(|item| item.trim().trim_end_matches(','));
    items.filter_map(|item| item.strip_prefix(prefix)).filter(|item| !item.is_empty()).collect()
}

/// The values of `label` in a list such as `t=1,v1=ab,v1=cd`.
pub(crate) fn labelled<'a>(
    value: &'a str,
    separator: char,
    label: &str,
) -> impl Iterator<Item = &'a str> {
    value.split(separator).filter_map(move |item| {
        let (name, value) = item.trim().split_once('=')?;
        (name == label).then_some(value)
    })
}

/// The timestamp as sent, where it must be known before hashing. One inside the
/// signed body is read only after the signature was found right.
pub(crate) fn stamp_text<'a>(
    layout: Layout<'_>,
    request: &Request<'a>,
) -> Result<Option<Cow<'a, str>>, Rejection> {
    let Some(stamp) = layout.timestamp else { return Ok(None) };
    match &stamp.place {
        Place::Header(name) => match header(request.headers, name) {
            Err(Rejection::MissingHeader { name }) => {
                Err(Rejection::MissingTimestamp { place: name })
            }
            value => value.map(|value| Some(Cow::Borrowed(value))),
        },
        Place::Label { header: name, label, separator } => {
            let place = || Cow::Owned(format!("{name} {label}="));
            let mut found = labelled(header(request.headers, name)?, *separator, label);
            match (found.next(), found.next()) {
                (Some(text), None) => Ok(Some(Cow::Borrowed(text))),
                (None, _) => Err(Rejection::MissingTimestamp { place: place() }),
                (Some(_), Some(_)) => Err(Rejection::BadTimestamp { place: place() }),
            }
        }
        Place::Json(_) => Ok(None),
    }
}

/// What is hashed, in pieces, so that the body is never copied.
pub(crate) fn signed_chunks<'a>(
    layout: Layout<'a>,
    request: &Request<'a>,
    stamp: Option<&'a str>,
) -> Result<Vec<Cow<'a, [u8]>>, Rejection> {
    layout
        .signed
        .iter()
        .map(|part| {
            Ok(match part {
                Part::Timestamp => Cow::Borrowed(stamp.unwrap_or_default().as_bytes()),
                Part::Body => Cow::Borrowed(request.body),
                Part::Url => Cow::Borrowed(request.url.as_bytes()),
                Part::Method => Cow::Owned(request.method.to_ascii_uppercase().into_bytes()),
                Part::Text(text) => Cow::Borrowed(text.as_bytes()),
                Part::Header(name) => Cow::Borrowed(header(request.headers, name)?.as_bytes()),
                Part::Json(pointer) => {
                    let text = json_text(request, pointer)?.ok_or(Rejection::UnreadableBody)?;
                    Cow::Owned(text.into_owned().into_bytes())
                }
            })
        })
        .collect()
}

fn check_time(
    rule: &Stamp,
    text: Option<&str>,
    request: &Request<'_>,
    received_at: Timestamp,
) -> Result<Timestamp, Rejection> {
    let place = || match &rule.place {
        Place::Header(name) | Place::Json(name) => name.clone(),
        Place::Label { header, label, .. } => Cow::Owned(format!("{header} {label}=")),
    };
    let in_body;
    let text = match (&rule.place, text) {
        (_, Some(text)) => text,
        (Place::Json(pointer), None) => {
            in_body = json_text(request, pointer)?
                .ok_or_else(|| Rejection::MissingTimestamp { place: place() })?;
            in_body.as_ref()
        }
        (_, None) => return Err(Rejection::MissingTimestamp { place: place() }),
    };
    let signed_at =
        time::parse(text, rule.format).ok_or_else(|| Rejection::BadTimestamp { place: place() })?;
    // Whole seconds, since that is what most providers send: 300.9 s is within 300.
    let age = received_at.as_second() - signed_at.as_second();
    let limit_secs = rule.tolerance_secs;
    if age > i64::from(limit_secs) {
        return Err(Rejection::TimestampTooOld { age_secs: age.unsigned_abs(), limit_secs });
    }
    if -age > i64::from(limit_secs) {
        return Err(Rejection::TimestampTooNew { ahead_secs: age.unsigned_abs(), limit_secs });
    }
    Ok(signed_at)
}

fn verify_token(
    token: &Token,
    keys: &[(usize, Key)],
    headers: &HeaderMap,
) -> Result<usize, Rejection> {
    let value = header(headers, &token.header)?;
    let decoded;
    let presented: &[u8] = match token.kind {
        TokenKind::Plain => value.as_bytes(),
        TokenKind::Bearer => after_scheme(value, "Bearer")?.as_bytes(),
        TokenKind::Basic => {
            let expected = "base64 of `user:password`";
            decoded = STANDARD
                .decode(after_scheme(value, "Basic")?)
                .map_err(|_| Rejection::MalformedSignature { expected })?;
            &decoded
        }
    };
    keys.iter()
        .find(|(_, key)| key.is_token(presented))
        .map(|(secret, _)| *secret)
        .ok_or(Rejection::WrongToken { tried: keys.len() })
}

/// What follows an authentication scheme, whose name may have any case.
fn after_scheme<'a>(value: &'a str, scheme: &'static str) -> Result<&'a str, Rejection> {
    match value.split_once(' ') {
        Some((name, rest)) if name.eq_ignore_ascii_case(scheme) => Ok(rest.trim_start()),
        _ => Err(Rejection::BadPrefix { prefix: Cow::Borrowed(scheme) }),
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
fn json_text<'a>(request: &Request<'a>, pointer: &str) -> Result<Option<Cow<'a, str>>, Rejection> {
    let found = look(request.body, &[pointer]).map_err(|_| Rejection::UnreadableBody)?;
    Ok(found.into_iter().next().flatten().and_then(Raw::text))
}
