//! Whether a request comes from its provider.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;

use crate::batch::{self, Item};
use crate::certificate;
use crate::fetched::FetchedKey;
use crate::look::{Raw, look};
use crate::mac::{Key, Tag, expectation, hash};
use crate::payload::bare;
use crate::provider::{
    KeyForm, Part, Place, Provider, Scheme, Signature, Stamp, Text, TimeFormat, Token, TokenKind,
    TokenPlace,
};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::{Keyring, Secret};
use crate::special::{Proof, Trial};
use crate::{jws, time};

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
    verify_with(provider, keyring, None, request, received_at)
}

/// The same for a provider whose keys are fetched: with what [`wanted_key`](crate::wanted_key)
/// asked for.
///
/// `fetched` is ignored where the source has the key itself, and where it is not the one that
/// this request needs. Without it, such a request is refused as
/// [`KeyNotFetched`](Rejection::KeyNotFetched).
pub fn verify_with(
    provider: &Provider,
    keyring: &Keyring,
    fetched: Option<&FetchedKey>,
    request: &Request<'_>,
    received_at: Timestamp,
) -> Result<Verified, Rejection> {
    let request = &bare(provider, request);
    let mut missing = match provider.pairing {
        Some(_) if keyring.len() == 0 => Rejection::NotPaired,
        _ => Rejection::NoSecret,
    };
    for (number, scheme) in provider.schemes.iter().enumerate().rev() {
        // Going backwards leaves the first scheme's header as the one to report.
        if let (true, Some(name)) = (can_check(keyring, number, scheme), scheme.header()) {
            missing = Rejection::MissingHeader { name: Cow::Owned(name.to_owned()) };
        }
    }
    let mut refused: Option<(&Scheme, Rejection)> = None;
    for (number, scheme) in provider.schemes.iter().enumerate() {
        let keys = keyring.keys(number);
        let had_its_say = |(first, _): &(&Scheme, _)| !share_list(first, scheme);
        if !can_check(keyring, number, scheme)
            || !is_present(scheme, request)
            || refused.as_ref().is_some_and(had_its_say)
        {
            continue;
        }
        let trial = Trial { keys, keyring, fetched, request, received_at };
        let proof = match scheme {
            Scheme::Signature(signature) => verify_signature(provider, signature, &trial),
            Scheme::Token(token) => verify_token(provider, token, &trial),
            Scheme::Jws(jws) => jws::verify(jws, &trial),
            Scheme::Special(special) => special.verify(&trial),
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

/// Whether the source has a key for the scheme, or may get one.
fn can_check(keyring: &Keyring, number: usize, scheme: &Scheme) -> bool {
    !keyring.keys(number).is_empty() || scheme.fetches_keys()
}

/// Whether the signatures of both schemes are in one list.
fn share_list(one: &Scheme, other: &Scheme) -> bool {
    match (one.signature(), other.signature()) {
        (Some(one), Some(other)) => {
            one.separator.is_some() && one.separator == other.separator && one.place == other.place
        }
        _ => false,
    }
}

/// Whether the request carries the proof this scheme looks for.
pub(crate) fn is_present(scheme: &Scheme, request: &Request<'_>) -> bool {
    let has = |name: &str| request.headers.contains_key(name);
    match scheme {
        Scheme::Signature(signature) => match &signature.place {
            Place::AnyOf(headers) => headers.iter().any(|name| has(name)),
            Place::Numbered(prefix) => has(&format!("{prefix}1")),
            Place::Query(name) => request.query(name).next().is_some(),
            _ => scheme.header().is_none_or(has),
        },
        Scheme::Token(Token { place: TokenPlace::Query(name), .. }) => {
            request.query(name).next().is_some()
        }
        _ => scheme.header().is_none_or(has),
    }
}

fn verify_signature(
    provider: &Provider,
    signature: &Signature,
    trial: &Trial<'_>,
) -> Result<Proof, Rejection> {
    if let Place::Item(pointer) = &signature.place {
        return verify_items(provider, signature, pointer, trial);
    }
    let Trial { keys, keyring, request, received_at, .. } = *trial;
    let numbered;
    let keys = match &signature.key {
        KeyForm::Certificate(at) => {
            numbered = certificate::numbered_keys(signature, at, trial)?;
            numbered.as_slice()
        }
        _ => keys,
    };
    let given = signatures(signature, request)?;
    let stamp = stamp_text(signature, request)?;
    let inputs = Inputs { keyring: Some(keyring), stamp: stamp.as_deref(), ..Inputs::default() };
    let secret = matching(signature, keys, &given, request, inputs)?
        .ok_or(Rejection::SignatureMismatch { tried: keys.len() })?;
    let signed_at = match &signature.timestamp {
        Some(rule) => check_time(rule, stamp.as_deref(), request, received_at)?,
        None => None,
    };
    Ok((secret, signed_at))
}

/// The number of the secret that made one of the signatures.
fn matching(
    signature: &Signature,
    keys: &[(usize, Key)],
    given: &[Tag],
    request: &Request<'_>,
    inputs: Inputs<'_>,
) -> Result<Option<usize>, Rejection> {
    if !signature.signed.contains(&Part::Secret) {
        let chunks = signed_chunks(signature, request, inputs)?;
        let made = keys.iter().find(|(_, key)| key.made_any(given, &chunks));
        return Ok(made.map(|(secret, _)| *secret));
    }
    for (number, key) in keys {
        let secret = inputs.keyring.and_then(|keyring| keyring.secrets().get(*number));
        let chunks = signed_chunks(signature, request, Inputs { secret, ..inputs })?;
        if key.made_any(given, &chunks) {
            return Ok(Some(*number));
        }
    }
    Ok(None)
}

/// Every item has a signature of its own, and every one must be right.
fn verify_items(
    provider: &Provider,
    signature: &Signature,
    pointer: &str,
    trial: &Trial<'_>,
) -> Result<Proof, Rejection> {
    let Trial { keys, keyring, request, .. } = *trial;
    let items = batch::items(provider, request.body).map_err(|_| Rejection::UnreadableBody)?;
    let items = items.filter(|items| !items.is_empty()).ok_or(Rejection::UnreadableBody)?;
    let len = signature.algorithm.signature_len();
    let mut secret = None;
    for item in items {
        let bytes = item.item.written().as_bytes();
        let text = pointed(bytes, pointer)?.ok_or(Rejection::UnreadableBody)?;
        let given = Tag::decode(&text, signature.encoding, len).ok_or_else(|| {
            Rejection::MalformedSignature { expected: expectation(signature.encoding, len) }
        })?;
        let inputs = Inputs { keyring: Some(keyring), item: Some(bytes), ..Inputs::default() };
        let made = matching(signature, keys, &[given], request, inputs)?;
        secret = Some(made.ok_or(Rejection::SignatureMismatch { tried: keys.len() })?);
    }
    Ok((secret.ok_or(Rejection::UnreadableBody)?, None))
}

/// The signatures that were sent, decoded. Those of other versions are passed over.
fn signatures(signature: &Signature, request: &Request<'_>) -> Result<Vec<Tag>, Rejection> {
    let texts = signature_texts(signature, request)?;
    if texts.is_empty() {
        let label = match &signature.place {
            Place::Label { label, .. } => label.clone(),
            _ => signature.prefix.clone(),
        };
        return Err(Rejection::NoKnownScheme { label });
    }
    if texts.len() > SIGNATURES_MAX {
        return Err(Rejection::TooManySignatures { limit: SIGNATURES_MAX });
    }
    let len = signature.algorithm.signature_len();
    let decode = |text: &Cow<'_, str>| Tag::decode(text, signature.encoding, len);
    let tags: Vec<Tag> = texts.iter().filter_map(decode).collect();
    if tags.is_empty() {
        let expected = expectation(signature.encoding, len);
        return Err(Rejection::MalformedSignature { expected });
    }
    Ok(tags)
}

/// The signatures that were sent, without what stands around them.
fn signature_texts<'a>(
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
fn one<'a>(
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

/// The values of `label` in a list such as `t=1,v1=ab,v1=cd`.
pub(crate) fn labelled<'a>(
    value: &'a str,
    separators: &str,
    label: &str,
) -> impl Iterator<Item = &'a str> {
    value.split(move |c| separators.contains(c)).filter_map(move |item| {
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
    signature.signed.iter().map(|part| chunk(part, request, inputs)).collect()
}

pub(crate) fn chunk<'a>(
    part: &'a Part,
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
        Part::Json(pointer) => bytes(json_text(request, pointer)?.unwrap_or_default()),
        Part::JsonRaw(pointer) => {
            let found = look(request.body, &[pointer]).map_err(|_| Rejection::UnreadableBody)?;
            let raw = found.into_iter().next().flatten().ok_or(Rejection::UnreadableBody)?;
            Cow::Borrowed(raw.written().as_bytes())
        }
        Part::Item(pointer) => {
            let item = inputs.item.ok_or(Rejection::UnreadableBody)?;
            bytes(pointed(item, pointer)?.unwrap_or_default())
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

/// When it was signed; none where what stands for a time is none.
fn check_time(
    rule: &Stamp,
    text: Option<&str>,
    request: &Request<'_>,
    received_at: Timestamp,
) -> Result<Option<Timestamp>, Rejection> {
    if rule.format == TimeFormat::Nonce {
        return Ok(None);
    }
    let place = || match &rule.place {
        Place::Label { header, label, .. } => Cow::Owned(format!("{header} {label}=")),
        Place::First { header: name, .. }
        | Place::Header(name)
        | Place::Form(name)
        | Place::Json(name) => name.clone(),
        _ => Cow::Borrowed("the request"),
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
    if let Some(limit_secs) = rule.tolerance_secs {
        check_age(signed_at, received_at, limit_secs)?;
    }
    Ok(Some(signed_at))
}

/// Whether a time is near enough to ours, in both directions.
pub(crate) fn check_age(
    signed_at: Timestamp,
    received_at: Timestamp,
    limit_secs: u32,
) -> Result<(), Rejection> {
    // Whole seconds, since that is what most providers send: 300.9 s is within 300.
    let age = received_at.as_second() - signed_at.as_second();
    if age > i64::from(limit_secs) {
        return Err(Rejection::TimestampTooOld { age_secs: age.unsigned_abs(), limit_secs });
    }
    if -age > i64::from(limit_secs) {
        return Err(Rejection::TimestampTooNew { ahead_secs: age.unsigned_abs(), limit_secs });
    }
    Ok(())
}

fn verify_token(provider: &Provider, token: &Token, trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let Trial { keys, request, .. } = *trial;
    let presented: Vec<Cow<'_, str>> = match &token.place {
        TokenPlace::Header(name) => vec![Cow::Borrowed(header(request.headers, name)?)],
        TokenPlace::Query(name) => vec![one(request.query(name), name)?],
        TokenPlace::Json(pointer) => {
            vec![json_text(request, pointer)?.ok_or(Rejection::UnreadableBody)?]
        }
        TokenPlace::Item(pointer) => {
            let items = batch::items(provider, request.body).ok().flatten();
            let items = items.filter(|items| !items.is_empty()).ok_or(Rejection::UnreadableBody)?;
            let token = |item: &Item<'_>| {
                let text = pointed(item.item.written().as_bytes(), pointer)?;
                text.map(|text| Cow::Owned(text.into_owned())).ok_or(Rejection::UnreadableBody)
            };
            items.iter().map(token).collect::<Result<_, _>>()?
        }
    };
    let mut secret = None;
    for value in &presented {
        let token = credential(token.kind, value)?;
        let matches = keys.iter().find(|(_, key)| key.is_token(&token));
        secret = Some(matches.ok_or(Rejection::WrongToken { tried: keys.len() })?.0);
    }
    Ok((secret.ok_or(Rejection::UnreadableBody)?, None))
}

/// The credential without what stands around it.
fn credential(kind: TokenKind, value: &str) -> Result<Cow<'_, [u8]>, Rejection> {
    Ok(match kind {
        TokenKind::Plain => Cow::Borrowed(value.as_bytes()),
        TokenKind::Bearer => Cow::Borrowed(after_scheme(value, "Bearer")?.as_bytes()),
        TokenKind::Basic => {
            let expected = "base64 of `user:password`";
            let decoded = STANDARD.decode(after_scheme(value, "Basic")?);
            Cow::Owned(decoded.map_err(|_| Rejection::MalformedSignature { expected })?)
        }
    })
}

/// What follows an authentication scheme, whose name may have any case.
pub(crate) fn after_scheme<'a>(value: &'a str, scheme: &'static str) -> Result<&'a str, Rejection> {
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
    header_text(name, value)
}

/// A value that came under a name, as text.
fn header_text<'a>(name: &str, value: &'a HeaderValue) -> Result<&'a str, Rejection> {
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
fn json_text<'a>(request: &Request<'a>, pointer: &str) -> Result<Option<Cow<'a, str>>, Rejection> {
    pointed(request.body, pointer)
}

pub(crate) fn pointed<'a>(
    json: &'a [u8],
    pointer: &str,
) -> Result<Option<Cow<'a, str>>, Rejection> {
    let found = look(json, &[pointer]).map_err(|_| Rejection::UnreadableBody)?;
    Ok(found.into_iter().next().flatten().and_then(Raw::signed_text))
}
