//! HTTP message signatures (RFC 9421): a signature over the parts of a request that it lists.
//!
//! The sender chooses what is covered, so the receiver says what must be: always the digest of the
//! body (RFC 9530), and whatever else the source names. Keys are told apart by `keyid`; the key
//! decides the algorithm, and what a request says of it is only compared.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256, Sha512};
use subtle::ConstantTimeEq as _;

use super::{Proof, Trial};
use crate::jwk::{self, JwsKey};
use crate::mac::Key;
use crate::provider::JwsAlgorithm;
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::secret::{BadSecret, Keyring};
use crate::verify::{SIGNATURES_MAX, check_age, header};

mod input;

use input::{Component, Input};

pub(crate) const SIGNATURE: &str = "signature";
const INPUT: &str = "signature-input";
const DIGEST: &str = "content-digest";

/// Headers beside the signature without which it cannot be checked.
pub(crate) const BESIDE: [&str; 2] = [INPUT, DIGEST];

/// How far the time of a signature may be off, unless the source says otherwise.
const TOLERANCE_SECS: u32 = 300;

/// The algorithms that keys may have, and their names in a request.
const ALGORITHMS: [(&str, JwsAlgorithm); 6] = [
    ("ed25519", JwsAlgorithm::EdDsa),
    ("ecdsa-p256-sha256", JwsAlgorithm::Es256),
    ("ecdsa-p384-sha384", JwsAlgorithm::Es384),
    ("rsa-pss-sha512", JwsAlgorithm::Ps512),
    ("rsa-v1_5-sha256", JwsAlgorithm::Rs256),
    ("hmac-sha256", JwsAlgorithm::Hs256),
];

/// The key of a secret: PEM, a JWK or a key set, else a shared secret.
pub(crate) fn key(number: usize, text: &str) -> Result<Option<Key>, BadSecret> {
    let algorithms = ALGORITHMS.map(|(_, algorithm)| algorithm);
    match jwk::read(&algorithms, text, true) {
        jwk::Text::Keys(keys) => Ok(Some(Key::Jws(keys))),
        jwk::Text::Unfit => Err(BadSecret::NotKey { number }),
        jwk::Text::Plain => {
            Ok(JwsKey::shared(&algorithms, text.as_bytes()).map(|key| Key::Jws(vec![key])))
        }
    }
}

pub(crate) fn verify(trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let request = trial.request;
    let signatures = input::byte_sequences(header(request.headers, SIGNATURE)?);
    let signatures = signatures.ok_or_else(|| malformed(SIGNATURE))?;
    let inputs = input::parse(header(request.headers, INPUT)?).ok_or_else(|| malformed(INPUT))?;
    if inputs.len() > SIGNATURES_MAX {
        return Err(Rejection::TooManySignatures { limit: SIGNATURES_MAX });
    }
    let wanted = trial.keyring.setting("label");
    let mut refused = None;
    for input in inputs.iter().filter(|input| wanted.is_none_or(|label| label == input.label)) {
        let signature = signatures.iter().find(|(label, _)| *label == input.label);
        let Some((_, signature)) = signature else { continue };
        match check(trial, input, signature) {
            Ok(proof) => return Ok(proof),
            Err(rejection) if rejection.is_about_time() => return Err(rejection),
            Err(rejection) => refused = refused.or(Some(rejection)),
        }
    }
    let label = || Cow::Owned(wanted.unwrap_or("a label in both headers").to_owned());
    Err(refused.unwrap_or_else(|| Rejection::NoKnownScheme { label: label() }))
}

/// Checks one signature of a request.
fn check(trial: &Trial<'_>, input: &Input<'_>, signature: &[u8]) -> Result<Proof, Rejection> {
    let Trial { keyring, request, received_at, .. } = *trial;
    check_coverage(keyring, input)?;
    check_digest(request)?;
    let base = base(request, input)?;
    let number = made_by(trial, input, base.as_bytes(), signature)?;
    let created = input.created.and_then(|secs| Timestamp::from_second(secs).ok());
    let place = || Cow::Borrowed("signature-input created");
    let created = created.ok_or_else(|| Rejection::MissingTimestamp { place: place() })?;
    let limit_secs = keyring.setting("tolerance").and_then(|text| text.parse().ok());
    check_age(created, received_at, limit_secs.unwrap_or(TOLERANCE_SECS))?;
    match input.expires {
        Some(end) if received_at.as_second() > end => {
            let ago_secs = received_at.as_second().abs_diff(end);
            Err(Rejection::TokenExpired { ago_secs })
        }
        _ => Ok((number, Some(created))),
    }
}

/// Refuses a signature that leaves out what must be covered.
fn check_coverage(keyring: &Keyring, input: &Input<'_>) -> Result<(), Rejection> {
    let said = keyring.setting("covered").unwrap_or_default();
    let said = said.split([' ', ',']).filter(|name| !name.is_empty());
    for name in std::iter::once(DIGEST).chain(said) {
        if !input.components.iter().any(|component| component.name == name) {
            return Err(Rejection::NotCovered { component: Cow::Owned(name.to_owned()) });
        }
    }
    Ok(())
}

/// Compares the body with its digest: every one that is known must be right, and one be there.
fn check_digest(request: &Request<'_>) -> Result<(), Rejection> {
    let missing = || Rejection::MissingBodyHash { name: DIGEST };
    let said = header(request.headers, DIGEST).map_err(|_| missing())?;
    let said = input::byte_sequences(said).ok_or_else(|| malformed(DIGEST))?;
    let mut known = 0;
    for (name, digest) in &said {
        let ours = match *name {
            "sha-256" => Sha256::digest(request.body).to_vec(),
            "sha-512" => Sha512::digest(request.body).to_vec(),
            _ => continue,
        };
        if !bool::from(ours.ct_eq(digest)) {
            return Err(Rejection::BodyHashMismatch);
        }
        known += 1;
    }
    if known == 0 { Err(missing()) } else { Ok(()) }
}

/// The number of the secret that made the signature.
fn made_by(
    trial: &Trial<'_>,
    input: &Input<'_>,
    base: &[u8],
    signature: &[u8],
) -> Result<usize, Rejection> {
    let named = |name: &str| ALGORITHMS.iter().find(|(known, _)| *known == name).map(|(_, a)| *a);
    let said = match input.alg {
        Some(name) => Some(named(name).ok_or(Rejection::UnknownAlgorithm { name: INPUT.into() })?),
        None => None,
    };
    if let Some(keyid) = trial.keyring.setting("keyid")
        && input.keyid != Some(keyid)
    {
        return Err(Rejection::UnknownKey);
    }
    let mut tried = 0;
    for (number, key) in trial.keys {
        for key in key.jws().iter().filter(|key| key.is_named(input.keyid)) {
            tried += 1;
            let fits = |algorithm: &&(&str, JwsAlgorithm)| {
                said.is_none_or(|said| said == algorithm.1) && key.has(algorithm.1)
            };
            let mut fitting = ALGORITHMS.iter().filter(fits);
            if fitting.any(|(_, algorithm)| key.verifies(*algorithm, base, signature)) {
                return Ok(*number);
            }
        }
    }
    match tried {
        0 => Err(Rejection::UnknownKey),
        tried => Err(Rejection::SignatureMismatch { tried }),
    }
}

/// What is signed: a line for each part that is covered, and one for the list of them.
fn base(request: &Request<'_>, input: &Input<'_>) -> Result<String, Rejection> {
    let mut base = String::new();
    for component in &input.components {
        let value = value(request, component)?;
        base.push_str(&format!("\"{}\": {value}\n", component.name));
    }
    base.push_str(&format!("\"@signature-params\": {}", input.written));
    Ok(base)
}

/// The value of one part of the request.
fn value<'a>(request: &Request<'a>, component: &Component<'_>) -> Result<Cow<'a, str>, Rejection> {
    let target = request.path_and_query();
    let (path, query) = target.split_once('?').map_or((target, ""), |(path, query)| (path, query));
    Ok(match component.name {
        "@method" => Cow::Owned(request.method.to_ascii_uppercase()),
        "@target-uri" => Cow::Borrowed(request.url),
        "@request-target" => Cow::Borrowed(target),
        "@path" => Cow::Borrowed(path),
        "@query" => Cow::Owned(format!("?{query}")),
        "@authority" => authority(request.url).ok_or_else(|| malformed(INPUT))?,
        "@scheme" => {
            let scheme = request.url.split_once("://").map(|(scheme, _)| scheme);
            Cow::Owned(scheme.ok_or_else(|| malformed(INPUT))?.to_ascii_lowercase())
        }
        name if name.starts_with('@') => {
            return Err(Rejection::UnknownAlgorithm { name: Cow::Owned(name.to_owned()) });
        }
        name => joined(request, name)?,
    })
}

/// All values of a header, as they are joined.
fn joined<'a>(request: &Request<'a>, name: &str) -> Result<Cow<'a, str>, Rejection> {
    let mut values = Vec::new();
    for value in request.headers.get_all(name) {
        values.push(value.to_str().map_err(|_| malformed(name))?.trim());
    }
    match values[..] {
        [] => Err(Rejection::MissingHeader { name: Cow::Owned(name.to_owned()) }),
        [value] => Ok(Cow::Borrowed(value)),
        _ => Ok(Cow::Owned(values.join(", "))),
    }
}

/// The host in lower case, with its port unless that is the usual one.
fn authority(url: &str) -> Option<Cow<'static, str>> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?.to_ascii_lowercase();
    let usual = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    Some(Cow::Owned(authority.strip_suffix(usual).unwrap_or(&authority).to_owned()))
}

fn malformed(name: &str) -> Rejection {
    let why = "not written as RFC 9421 says, or covers what is not known here";
    Rejection::MalformedHeader { name: Cow::Owned(name.to_owned()), why }
}

/// What a signature covers, under which label and key, before it is made.
struct Outline {
    label: String,
    covered: String,
    keyid: Option<String>,
}

impl Outline {
    /// As the request was signed before, else method, URL, digest and content type.
    fn of(draft: &Draft) -> Self {
        let before = draft.headers.get(INPUT).and_then(|value| value.to_str().ok());
        if let Some(input) = before.and_then(input::parse).as_deref().and_then(<[_]>::first) {
            let names = input.components.iter().map(|component| format!("\"{}\"", component.name));
            return Self {
                label: input.label.to_owned(),
                covered: names.collect::<Vec<_>>().join(" "),
                keyid: input.keyid.map(str::to_owned),
            };
        }
        let mut covered = r#""@method" "@target-uri" "content-digest""#.to_owned();
        if draft.headers.contains_key(http::header::CONTENT_TYPE) {
            covered.push_str(r#" "content-type""#);
        }
        Self { label: "sig1".to_owned(), covered, keyid: None }
    }
}

/// Signs what was covered before, or what a sample covers.
pub(crate) fn sign(key: &Key, draft: &mut Draft, at: Timestamp) -> Option<()> {
    let key = key.jws().first()?;
    let algorithm = key.algorithm()?;
    let (name, _) = ALGORITHMS.iter().find(|(_, known)| *known == algorithm)?;
    let digest = STANDARD.encode(Sha256::digest(&draft.body));
    draft.set(DIGEST, &format!("sha-256=:{digest}:")).then_some(())?;
    let Outline { label, covered, keyid } = Outline::of(draft);
    let keyid = key.kid().or(keyid.as_deref()).unwrap_or("sample");
    let created = at.as_second();
    let params = format!(r#"{label}=({covered});created={created};keyid="{keyid}";alg="{name}""#);
    let inputs = input::parse(&params)?;
    let base = base(&draft.request(), inputs.first()?).ok()?;
    let signature = STANDARD.encode(key.sign(base.as_bytes())?);
    draft.set(SIGNATURE, &format!("{label}=:{signature}:")).then_some(())?;
    draft.set(INPUT, &params).then_some(())
}
