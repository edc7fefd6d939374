//! Whether a request comes from its provider.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::batch::{self, Item};
use crate::certificate;
use crate::fetched::FetchedKey;
use crate::jws;
use crate::mac::{Key, Message, Tag, expectation};
use crate::payload::bare;
use crate::provider::{
    KeyForm, Part, Place, Provider, Scheme, Signature, Text, Token, TokenKind, TokenPlace,
};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::Keyring;
use crate::special::{Proof, Trial};

mod places;
mod signed;
mod timing;

pub(crate) use places::{header, labelled, one, pointed, separated, stamp_text};
use places::{json_text, signature_texts};
pub(crate) use signed::{Inputs, chunks, signed_chunks};
pub(crate) use timing::check_age;
use timing::{check_boundary, check_time};

/// The longest header that is looked at.
pub(crate) const HEADER_BYTES_MAX: usize = 4096;

/// How many signatures of one request are tried.
pub(crate) const SIGNATURES_MAX: usize = 8;

/// What verification found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which secret of the keyring matched, counted from 0. A number that no secret has, from
    /// [`Keyring::len`] on, stands for a public key that was fetched or that the source says as a
    /// setting: there is no secret to name then.
    pub secret: usize,
    /// The name of the scheme, such as `hmac-sha256`.
    pub scheme: &'static str,
    /// Which of the ways that a source may choose from this was, where there are any.
    pub way: Option<&'static str>,
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
    check_named(provider, keyring, request)?;
    let mut refused: Option<(&Scheme, Rejection)> = None;
    for (number, scheme) in accepted(provider, keyring) {
        let keys = keyring.keys(number);
        let had_its_say = |(first, _): &(&Scheme, _)| !share_list(first, scheme);
        if !can_check(keyring, number, scheme)
            || !is_present(scheme, request)
            || refused.as_ref().is_some_and(had_its_say)
        {
            continue;
        }
        let trial = Trial { provider, keys, keyring, fetched, request, received_at };
        let proof = match scheme {
            Scheme::Signature(signature) => verify_signature(provider, signature, &trial),
            Scheme::Token(token) => verify_token(provider, token, &trial),
            Scheme::Jws(jws) => jws::verify(jws, &trial),
            Scheme::Special(special) => special.verify(&trial),
        };
        match (proof, &refused) {
            (Ok((secret, signed_at)), _) => {
                let way = provider.choice.and_then(|choice| choice.way_of(number));
                return Ok(Verified { secret, scheme: scheme.name(), way, signed_at });
            }
            (Err(rejection), _) if rejection.is_about_time() => return Err(rejection),
            // A signature that is wrong tells more than one that is not there.
            (Err(rejection), None | Some((_, Rejection::NoKnownScheme { .. }))) => {
                refused = Some((scheme, rejection));
            }
            (Err(_), Some(_)) => {}
        }
    }
    Err(refused.map_or_else(|| missing(provider, keyring, request), |(_, rejection)| rejection))
}

/// The schemes that the source accepts, in the order they are tried, with their numbers.
pub(crate) fn accepted<'p>(
    provider: &'p Provider,
    keyring: &Keyring,
) -> impl Iterator<Item = (usize, &'p Scheme)> {
    let numbers = keyring.accepted().iter();
    numbers.filter_map(|number| Some((*number, provider.schemes.get(*number)?)))
}

/// What a request without any proof lacks: that of the first scheme that could be checked.
pub(crate) fn missing(provider: &Provider, keyring: &Keyring, request: &Request<'_>) -> Rejection {
    let mut schemes = provider.schemes.iter().enumerate();
    let is_weaker = |(number, scheme): (usize, &Scheme)| {
        !keyring.accepted().contains(&number) && is_present(scheme, request)
    };
    if let Some(way) = keyring.way(provider)
        && schemes.any(is_weaker)
    {
        return Rejection::WeakerScheme { needed: Cow::Borrowed(way) };
    }
    let named = accepted(provider, keyring).find_map(|(number, scheme)| {
        can_check(keyring, number, scheme).then(|| proof_name(scheme)).flatten()
    });
    match (named, provider.pairing) {
        (Some(name), _) => Rejection::MissingHeader { name },
        (None, Some(_)) if keyring.len() == 0 => Rejection::NotPaired,
        (None, _) => Rejection::NoSecret,
    }
}

/// Whether the source has a key for the scheme, or may get one. A source that has keys for another
/// scheme, and does not say what this one is compared with, does not use this one.
pub(crate) fn can_check(keyring: &Keyring, number: usize, scheme: &Scheme) -> bool {
    let is_used = || !keyring.has_keys() || scheme.is_set_up(keyring);
    !keyring.keys(number).is_empty() || scheme.fetches_keys() && is_used()
}

/// Refuses what names another account than the source does.
pub(crate) fn check_named(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
) -> Result<(), Rejection> {
    for (name, said) in provider.fixed_headers.iter() {
        if header(request.headers, name)? != said {
            return Err(Rejection::UnknownAlgorithm { name: name.clone() });
        }
    }
    for setting in provider.settings.iter() {
        if let (Some(name), Some(said)) = (&setting.header, keyring.setting(&setting.key))
            && header(request.headers, name)? != said
        {
            return Err(Rejection::WrongToken { tried: 1 });
        }
    }
    Ok(())
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

/// The header or the parameter that carries the proof; none if it is in the body.
fn proof_name(scheme: &Scheme) -> Option<Text> {
    match scheme {
        Scheme::Signature(Signature { place: Place::Numbered(prefix), .. }) => {
            Some(Cow::Owned(format!("{prefix}1")))
        }
        Scheme::Signature(Signature { place: Place::Query(name), .. })
        | Scheme::Token(Token { place: TokenPlace::Query(name), .. }) => Some(name.clone()),
        _ => scheme.header().map(|name| Cow::Owned(name.to_owned())),
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
        Some(rule) => {
            let text = stamp.as_deref();
            check_boundary(signature, rule, text)?;
            check_time(rule, text, request, received_at)?
        }
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
        let message = Message::new(signed_chunks(signature, request, inputs)?);
        let made = keys.iter().find(|(_, key)| key.made_any(given, &message));
        return Ok(made.map(|(secret, _)| *secret));
    }
    for (number, key) in keys {
        let secret = inputs.keyring.and_then(|keyring| keyring.secrets().get(*number));
        let chunks = signed_chunks(signature, request, Inputs { secret, ..inputs })?;
        if key.made_any(given, &Message::new(chunks)) {
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
pub(crate) fn signatures(
    signature: &Signature,
    request: &Request<'_>,
) -> Result<Vec<Tag>, Rejection> {
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
            let token = |item: &Item<'_, '_>| {
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
pub(crate) fn credential(kind: TokenKind, value: &str) -> Result<Cow<'_, [u8]>, Rejection> {
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
