//! JSON Web Signatures: reading one, checking it, making one.
//!
//! A small reader of our own over aws-lc-rs. The usual library, `jsonwebtoken`, has neither ES512
//! nor payloads that are left out, which two providers need, and hides what every refusal here
//! must say. What is read is little: the compact form and a handful of claims.
//!
//! Nothing that a token says of itself is believed before its signature is: not its algorithm,
//! which must be one of the entry and of the key; not its `kid`, which only picks among our own
//! keys; and not its `jku`, which only picks among the URLs of the entry.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::fetched::{FetchedKey, WantedForm, WantedKey};
use crate::jwk::{self, JwsKey};
use crate::mac::Key;
use crate::provider::{Claim, Jws, JwsAlgorithm, JwsKeys, JwsPayload, Text};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::{BadSecret, Keyring, Settings};
use crate::special::{Proof, Trial};
use crate::verify::header;

mod atlassian;
mod claims;
mod compact;
mod detached;
mod make;

use compact::Compact;
pub(crate) use make::sign;

/// The setting that names another key set than the entry does.
const JWKS_URL: &str = "jwks_url";

/// How many keys are tried for one token.
const TRIES_MAX: usize = 16;

/// The key of a secret; none if such a secret belongs to another scheme.
pub(crate) fn key(jws: &Jws, number: usize, text: &str) -> Result<Option<Key>, BadSecret> {
    let takes_pairs = jws.algorithms.iter().any(|algorithm| !algorithm.is_hmac());
    match jwk::read(&jws.algorithms, text, true) {
        jwk::Text::Keys(keys) => Ok(Some(Key::Jws(keys))),
        jwk::Text::Unfit if takes_pairs => Err(BadSecret::NotKey { number }),
        jwk::Text::Unfit => Err(BadSecret::NotShared { number }),
        jwk::Text::Plain => match JwsKey::shared(&jws.algorithms, text.as_bytes()) {
            Some(key) => Ok(Some(Key::Jws(vec![key]))),
            None if jws.keys == JwsKeys::Secret => Err(BadSecret::NotKey { number }),
            // The secret of another scheme of the entry.
            None => Ok(None),
        },
    }
}

/// The keys of a setting, which is public: it never becomes a shared secret.
pub(crate) fn pinned(jws: &Jws, text: &str) -> Option<Key> {
    match jwk::read(&jws.algorithms, text, false) {
        jwk::Text::Keys(keys) => Some(Key::Jws(keys)),
        jwk::Text::Unfit | jwk::Text::Plain => None,
    }
}

/// Whether the settings say where to get the keys. A URL that cannot be used is an error.
pub(crate) fn can_fetch(jws: &Jws, settings: &Settings) -> Result<bool, BadSecret> {
    let key: &str = match &jws.keys {
        JwsKeys::Secret => return Ok(false),
        JwsKeys::Jwks(_) => JWKS_URL,
        JwsKeys::JwksSetting(key) => key,
    };
    match settings.get(key).filter(|url| !url.is_empty()) {
        Some(url) if is_safe(url) => Ok(true),
        Some(_) => Err(BadSecret::BadSetting { key: Text::Owned(key.to_owned()) }),
        None => Ok(matches!(jws.keys, JwsKeys::Jwks(_))),
    }
}

/// Whether keys may be fetched from a URL: `https`, a plain host, and the usual port.
fn is_safe(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let is_text = url.bytes().all(|byte| byte.is_ascii_graphic());
    host.contains('.') && host.bytes().all(plain) && is_text && !url.contains('#')
}

/// The key set that must be fetched; asked only where the source has no key. Nothing is fetched
/// for what could never be believed.
pub(crate) fn wanted(
    jws: &Jws,
    keyring: &Keyring,
    request: &Request<'_>,
) -> Result<Option<WantedKey>, Rejection> {
    let text = token_text(jws, request)?;
    let token = Compact::parse(text)?;
    check_settings(jws, keyring)?;
    // A key that anybody can fetch is no shared secret.
    if accepted(jws, &token)?.is_hmac() {
        return Err(unknown_algorithm(jws));
    }
    let url = key_set_url(jws, keyring, &token)?;
    Ok(Some(WantedKey { url, kid: token.header.kid.clone(), form: WantedForm::KeySet }))
}

/// Where the key set is. The token may choose, but only among the places of the provider.
fn key_set_url(jws: &Jws, keyring: &Keyring, token: &Compact<'_>) -> Result<String, Rejection> {
    let said = |key: &str| keyring.setting(key).filter(|url| is_safe(url)).map(str::to_owned);
    match &jws.keys {
        JwsKeys::Secret => Err(Rejection::NoSecret),
        JwsKeys::JwksSetting(key) => said(key).ok_or(Rejection::NoSecret),
        JwsKeys::Jwks(urls) => {
            if let Some(url) = said(JWKS_URL) {
                return Ok(url);
            }
            let named = token.header.text("jku").filter(|_| urls.len() > 1);
            let url = match named {
                Some(jku) => urls.iter().find(|url| *url == jku),
                None => urls.first(),
            };
            let why = "its `jku` is no place of the provider";
            url.map(ToString::to_string).ok_or(Rejection::BadToken { why })
        }
    }
}

pub(crate) fn verify(jws: &Jws, trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let token = Compact::parse(token_text(jws, trial.request)?)?;
    check_settings(jws, trial.keyring)?;
    let algorithm = accepted(jws, &token)?;
    let message = message(jws, &token, trial)?;
    let secret = matching(jws, &token, algorithm, &message, trial)?;
    let issued_at = match &jws.payload {
        JwsPayload::Claims(rules) => {
            let expected = "a token in three parts";
            let payload = compact::decode(token.payload_text)
                .ok_or(Rejection::MalformedSignature { expected })?;
            claims::check(rules, &payload, trial)?
        }
        JwsPayload::Detached(_) => None,
        JwsPayload::TrueLayer => detached::truelayer_time(trial.request)?,
    };
    Ok((secret, issued_at))
}

/// The token as it was sent, without the word in front of it.
fn token_text<'a>(jws: &Jws, request: &Request<'a>) -> Result<&'a str, Rejection> {
    let Some(name) = &jws.header else {
        let expected = "a token in three parts";
        let text = std::str::from_utf8(request.body);
        return text.map_err(|_| Rejection::MalformedSignature { expected });
    };
    let value = header(request.headers, name)?;
    match value.split_once(' ') {
        None if jws.word.is_empty() => Ok(value),
        // It does no harm where none is written.
        Some((word, rest)) if jws.word.is_empty() && word.eq_ignore_ascii_case("bearer") => {
            Ok(rest.trim_start())
        }
        Some((word, rest)) if word.eq_ignore_ascii_case(&jws.word) => Ok(rest.trim_start()),
        _ => Err(Rejection::BadPrefix { prefix: jws.word.clone() }),
    }
}

/// Without what the claims are compared with, any token of the issuer would do.
pub(crate) fn check_settings(jws: &Jws, keyring: &Keyring) -> Result<(), Rejection> {
    let JwsPayload::Claims(claims) = &jws.payload else { return Ok(()) };
    for claim in claims.iter() {
        if let Claim::IsSetting(_, key) | Claim::AnyIsSetting(_, key) = claim
            && keyring.setting(key).is_none()
        {
            return Err(Rejection::NoSetting { key: key.clone() });
        }
    }
    Ok(())
}

/// The algorithm of the entry that the token names.
fn accepted(jws: &Jws, token: &Compact<'_>) -> Result<JwsAlgorithm, Rejection> {
    token.header.is_one_of(&jws.algorithms).ok_or_else(|| unknown_algorithm(jws))
}

fn unknown_algorithm(jws: &Jws) -> Rejection {
    let name = jws.header.clone().unwrap_or(Cow::Borrowed("the token"));
    Rejection::UnknownAlgorithm { name }
}

/// What is signed: the first part, a dot, and the payload in base64.
fn message<'a>(
    jws: &Jws,
    token: &Compact<'a>,
    trial: &Trial<'_>,
) -> Result<Cow<'a, [u8]>, Rejection> {
    let payload = match &jws.payload {
        JwsPayload::Claims(_) => return Ok(Cow::Borrowed(token.message())),
        JwsPayload::Detached(parts) => {
            detached::check_empty(token)?;
            detached::parts(parts, trial.request, trial.keyring)?
        }
        JwsPayload::TrueLayer => {
            detached::check_empty(token)?;
            Cow::Owned(detached::truelayer(&token.header, trial.request)?)
        }
    };
    let mut message = format!("{}.", token.header_text);
    URL_SAFE_NO_PAD.encode_string(payload, &mut message);
    Ok(Cow::Owned(message.into_bytes()))
}

/// The number of the secret that made the signature.
fn matching(
    jws: &Jws,
    token: &Compact<'_>,
    algorithm: JwsAlgorithm,
    message: &[u8],
    trial: &Trial<'_>,
) -> Result<usize, Rejection> {
    let keys: Vec<(usize, &JwsKey)> = if trial.keys.is_empty() {
        let served = served_keys(jws, token, trial)?;
        served.into_iter().map(|key| (trial.keyring.len(), key)).collect()
    } else {
        trial
            .keys
            .iter()
            .flat_map(|(number, key)| key.jws().iter().map(|key| (*number, key)))
            .collect()
    };
    // What a key can check was settled when it was read; the token changes nothing about it.
    let able: Vec<_> = keys.into_iter().filter(|(_, key)| key.has(algorithm)).collect();
    if able.is_empty() {
        return Err(unknown_algorithm(jws));
    }
    let kid = token.header.kid.as_deref();
    let fits =
        |(_, key): &(usize, &JwsKey)| key.is_named(kid) && !key.is_expired(trial.received_at);
    let named: Vec<_> = able.into_iter().filter(fits).take(TRIES_MAX).collect();
    let made = named.iter().find(|(_, key)| key.verifies(algorithm, message, &token.signature));
    match made {
        Some((number, _)) => Ok(*number),
        None if named.is_empty() => Err(Rejection::UnknownKey),
        None => Err(Rejection::SignatureMismatch { tried: named.len() }),
    }
}

/// The keys of the set that was fetched for this token.
fn served_keys<'t>(
    jws: &Jws,
    token: &'t Compact<'_>,
    trial: &Trial<'t>,
) -> Result<Vec<&'t JwsKey>, Rejection> {
    let fetched: &'t FetchedKey = trial.fetched.ok_or(Rejection::KeyNotFetched)?;
    let url = key_set_url(jws, trial.keyring, token)?;
    if fetched.jwks(&url, None).next().is_none() {
        return Err(Rejection::KeyNotFetched);
    }
    let kid = token.header.kid.as_deref();
    let served: Vec<Option<&JwsKey>> = fetched.jwks(&url, kid).take(TRIES_MAX).collect();
    if served.is_empty() {
        return Err(Rejection::UnknownKey);
    }
    Ok(served.into_iter().flatten().collect())
}

/// The claims of a token that is a whole body, as they are written. Nothing is checked: call it
/// only for a request that was verified.
pub(crate) fn claims_of(body: &[u8]) -> Option<Vec<u8>> {
    let token = Compact::parse(std::str::from_utf8(body).ok()?).ok()?;
    compact::decode(token.payload_text)
}
