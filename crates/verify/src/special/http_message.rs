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

use super::{Proof, Signer, Trial};
use crate::jwk::{self, JwsKey};
use crate::mac::Key;
use crate::provider::{Field, JwsAlgorithm, Provider};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::secret::{BadSecret, Keyring};
use crate::sign::CannotSign;
use crate::verify::{HEADER_BYTES_MAX, SIGNATURES_MAX, check_age};

mod input;

use input::{Component, Input};

pub(crate) const SIGNATURE: &str = "signature";
const INPUT: &str = "signature-input";
const DIGEST: &str = "content-digest";

/// Headers beside the signature without which it cannot be checked.
pub(crate) const BESIDE: [&str; 2] = [INPUT, DIGEST];

/// How far the time of a signature may be off, unless the source says otherwise.
const TOLERANCE_SECS: u32 = 300;

/// The most that a source may say.
const TOLERANCE_SECS_MAX: u32 = 86_400;

/// Parts of a request that are no headers.
const DERIVED: [&str; 7] =
    ["@method", "@target-uri", "@request-target", "@path", "@query", "@authority", "@scheme"];

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

/// How many seconds a signature may be off, as a source says it; none if it says nothing that can
/// be meant.
pub(crate) fn tolerance(said: &str) -> Option<u32> {
    said.parse().ok().filter(|secs| (1..=TOLERANCE_SECS_MAX).contains(secs))
}

/// The parts that a source says must be covered.
pub(crate) fn said_parts(said: &str) -> impl Iterator<Item = String> {
    let names = said.split([' ', ',']).filter(|name| !name.is_empty());
    names.map(str::to_ascii_lowercase)
}

/// Whether a part of this name, in lower case, can be covered.
pub(crate) fn is_part(name: &str) -> bool {
    DERIVED.contains(&name) || http::HeaderName::from_bytes(name.as_bytes()).is_ok()
}

pub(crate) fn check_head(request: &Request<'_>) -> Result<(), Rejection> {
    dictionary(request, SIGNATURE).map(drop)
}

pub(crate) fn verify(trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let request = trial.request;
    let signatures = dictionary(request, SIGNATURE)?;
    let signatures = input::byte_sequences(&signatures).ok_or_else(|| malformed(SIGNATURE))?;
    let inputs = dictionary(request, INPUT)?;
    let inputs = input::parse(&inputs).ok_or_else(|| malformed(INPUT))?;
    check_digest(request)?;
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
    check_coverage(trial, input)?;
    let base = base(request, input)?;
    let number = made_by(trial, input, base.as_bytes(), signature)?;
    let created = input.created.and_then(|secs| Timestamp::from_second(secs).ok());
    let place = || Cow::Borrowed("signature-input created");
    let created = created.ok_or_else(|| Rejection::MissingTimestamp { place: place() })?;
    let limit_secs = keyring.setting("tolerance").and_then(tolerance);
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
fn check_coverage(trial: &Trial<'_>, input: &Input<'_>) -> Result<(), Rejection> {
    for name in must_cover(trial.provider, trial.keyring, trial.request) {
        if !input.components.iter().any(|component| component.name == name) {
            return Err(Rejection::NotCovered { component: Cow::Owned(name) });
        }
    }
    Ok(())
}

/// What a signature of this request must cover: the digest of the body, what the source says, and
/// the headers that tell what the event is, for anyone could change them otherwise.
fn must_cover(provider: &Provider, keyring: &Keyring, request: &Request<'_>) -> Vec<String> {
    let mut names = vec![DIGEST.to_owned()];
    names.extend(said_parts(keyring.setting("covered").unwrap_or_default()));
    let read = provider.fields().filter_map(|field| match field {
        Field::Header(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    names.extend(read.filter(|name| request.headers.contains_key(name)));
    names
}

/// Compares the body with its digest: every one that is known must be right, and one be there.
fn check_digest(request: &Request<'_>) -> Result<(), Rejection> {
    let missing = || Rejection::MissingBodyHash { name: DIGEST };
    let said = dictionary(request, DIGEST).map_err(|_| missing())?;
    let said = input::byte_sequences(&said).ok_or_else(|| malformed(DIGEST))?;
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

/// A dictionary of structured fields, which may come in several lines.
fn dictionary<'a>(request: &Request<'a>, name: &str) -> Result<Cow<'a, str>, Rejection> {
    let text = joined(request, name)?;
    let owned = || Cow::Owned(name.to_owned());
    match text.len() {
        0 => Err(Rejection::MissingHeader { name: owned() }),
        1..=HEADER_BYTES_MAX => Ok(text),
        _ => Err(Rejection::MalformedHeader { name: owned(), why: "too long" }),
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
    /// As the request was signed before, else method, URL, digest and content type. What is not in
    /// the request any more, such as the length that it came with, cannot be covered.
    fn of(signer: &Signer<'_>, request: &Request<'_>) -> Self {
        let keyring = signer.keyring;
        let wanted = keyring.setting("label");
        let before = joined(request, INPUT).unwrap_or_default();
        let before = input::parse(&before).unwrap_or_default();
        let old = before.iter().find(|input| wanted.is_none_or(|label| label == input.label));
        let first: Vec<&str> = match old {
            Some(old) => old.components.iter().map(|component| component.name).collect(),
            None => vec!["@method", "@target-uri", DIGEST, "content-type"],
        };
        let mut names: Vec<String> = first.into_iter().map(str::to_owned).collect();
        for name in must_cover(signer.provider, keyring, request) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let is_there = |name: &&String| value(request, &Component { name }).is_ok();
        let covered = names.iter().filter(is_there).map(|name| format!("\"{name}\""));
        let keyid = keyring.setting("keyid").or(old.and_then(|old| old.keyid));
        Self {
            label: wanted.or(old.map(|old| old.label)).unwrap_or("sig1").to_owned(),
            covered: covered.collect::<Vec<_>>().join(" "),
            keyid: keyid.map(str::to_owned),
        }
    }
}

/// Signs what was covered before, or what a sample covers.
pub(crate) fn sign(
    signer: &Signer<'_>,
    draft: &mut Draft,
    at: Timestamp,
) -> Result<(), CannotSign> {
    let incomplete = |what: &str| CannotSign::Incomplete(what.to_owned());
    let key = signer.key.jws_signer().ok_or(CannotSign::PublicKey)?;
    let known = ALGORITHMS.iter().find(|(_, known)| key.algorithm() == Some(*known));
    let (name, _) = known.ok_or_else(|| incomplete("an algorithm of RFC 9421"))?;
    let digest = STANDARD.encode(Sha256::digest(&draft.body));
    let set = |draft: &mut Draft, name: &str, value: &str| match draft.set(name, value) {
        true => Ok(()),
        false => Err(incomplete(name)),
    };
    set(draft, DIGEST, &format!("sha-256=:{digest}:"))?;
    let Outline { label, covered, keyid } = Outline::of(signer, &draft.request());
    let keyid = key.kid().or(keyid.as_deref()).unwrap_or("sample");
    let created = at.as_second();
    let params = format!(r#"{label}=({covered});created={created};keyid="{keyid}";alg="{name}""#);
    let inputs = input::parse(&params).unwrap_or_default();
    let input = inputs.first().ok_or_else(|| incomplete(INPUT))?;
    let base = base(&draft.request(), input).map_err(|missing| incomplete(&missing.to_string()))?;
    let signature = key.sign(base.as_bytes()).ok_or(CannotSign::PublicKey)?;
    set(draft, SIGNATURE, &format!("{label}=:{}:", STANDARD.encode(signature)))?;
    set(draft, INPUT, &params)
}
