//! Making a token as the provider would.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::atlassian;
use super::detached::{self, TRUELAYER_TIME};
use crate::jwk::JwsKey;
use crate::mac::Key;
use crate::provider::{Claim, HashForm, Jws, JwsPayload};
use crate::rejection::Rejection;
use crate::request::Draft;
use crate::secret::Keyring;
use crate::sign::CannotSign;

/// How long a token that we make is good, in seconds.
const LIFE_SECS: i64 = 300;

/// Puts a token into the draft.
pub(crate) fn sign(
    jws: &Jws,
    key: &Key,
    keyring: &Keyring,
    draft: &mut Draft,
    at: Timestamp,
) -> Result<(), CannotSign> {
    let key = key.jws_signer().ok_or(CannotSign::PublicKey)?;
    let mut header = json!({ "typ": "JWT" });
    let payload = match &jws.payload {
        JwsPayload::Claims(rules) => {
            let first = match &jws.header {
                None => of_body(draft)?,
                Some(name) => of_old_token(name, draft, at),
            };
            claims(rules, first, keyring, draft, at)?.to_string().into_bytes()
        }
        JwsPayload::Detached(parts) => detached::parts(parts, &draft.request(), keyring)
            .map_err(|missing| incomplete(&missing))?
            .into_owned(),
        JwsPayload::TrueLayer => {
            set(draft, TRUELAYER_TIME, &at.to_string())?;
            header = json!({ "tl_version": "2", "tl_headers": TRUELAYER_TIME });
            detached::truelayer_text(&[TRUELAYER_TIME], &draft.request())
                .map_err(|missing| incomplete(&missing))?
        }
    };
    let [first, middle, last] = compact(key, header, &payload)?;
    let token = match &jws.payload {
        JwsPayload::Claims(_) => format!("{first}.{middle}.{last}"),
        JwsPayload::Detached(_) | JwsPayload::TrueLayer => format!("{first}..{last}"),
    };
    match &jws.header {
        None => draft.body = token.into_bytes(),
        Some(name) if jws.word.is_empty() => set(draft, name, &token)?,
        Some(name) => set(draft, name, &format!("{} {token}", jws.word))?,
    }
    Ok(())
}

fn set(draft: &mut Draft, name: &str, value: &str) -> Result<(), CannotSign> {
    let done = draft.set(name, value);
    done.then_some(()).ok_or_else(|| CannotSign::Incomplete(format!("header `{name}`")))
}

/// A part of the request that is missing.
fn incomplete(rejection: &Rejection) -> CannotSign {
    CannotSign::Incomplete(rejection.to_string())
}

/// All three parts.
fn compact(key: &JwsKey, mut header: Value, payload: &[u8]) -> Result<[String; 3], CannotSign> {
    if let Some(algorithm) = key.algorithm() {
        header["alg"] = Value::from(algorithm.name());
    }
    if let Some(kid) = key.kid() {
        header["kid"] = Value::from(kid);
    }
    let first = URL_SAFE_NO_PAD.encode(header.to_string());
    let middle = URL_SAFE_NO_PAD.encode(payload);
    let signature = key.sign(format!("{first}.{middle}").as_bytes());
    let last = URL_SAFE_NO_PAD.encode(signature.ok_or(CannotSign::PublicKey)?);
    Ok([first, middle, last])
}

/// The claims of a token that is the whole body, as the draft has them.
fn of_body(draft: &Draft) -> Result<Map<String, Value>, CannotSign> {
    match serde_json::from_slice(&draft.body) {
        Ok(Value::Object(claims)) => Ok(claims),
        _ => Err(CannotSign::BodyNotObject),
    }
}

/// What the token in the draft says that is replaced, with other times: a handler may read more of
/// it than its proof.
fn of_old_token(header: &str, draft: &Draft, at: Timestamp) -> Map<String, Value> {
    let old = draft.headers.get(header).and_then(|value| value.to_str().ok());
    let token = old.and_then(|value| value.split_ascii_whitespace().last());
    let claims = token.and_then(|token| super::claims_of(token.as_bytes()));
    let claims = claims.and_then(|claims| serde_json::from_slice(&claims).ok());
    let mut claims: Map<String, Value> = claims.unwrap_or_default();
    for (name, time) in [("exp", at.as_second() + LIFE_SECS), ("nbf", at.as_second())] {
        if let Some(old) = claims.get_mut(name) {
            *old = Value::from(time);
        }
    }
    claims
}

/// Claims for which every rule holds, and those of `claims` that no rule is about.
fn claims(
    rules: &[Claim],
    mut claims: Map<String, Value>,
    keyring: &Keyring,
    draft: &Draft,
    at: Timestamp,
) -> Result<Value, CannotSign> {
    let setting = |key: &str| {
        let said = keyring.setting(key);
        said.ok_or_else(|| CannotSign::Incomplete(format!("setting `{key}`")))
    };
    claims.insert("iat".to_owned(), Value::from(at.as_second()));
    for rule in rules {
        let (name, value) = match rule {
            Claim::Is(name, text) => (name.as_ref(), Value::from(text.as_ref())),
            Claim::IsSetting(name, key) => (name.as_ref(), Value::from(setting(key)?)),
            Claim::AnyIsSetting(names, key) => {
                (names.first().map_or("", AsRef::as_ref), Value::from(setting(key)?))
            }
            Claim::MayBeSetting(name, key) => match keyring.setting(key) {
                Some(said) => (name.as_ref(), Value::from(said)),
                None => continue,
            },
            Claim::IsUrl(name) => (name.as_ref(), Value::from(draft.url.as_str())),
            Claim::IsTrue(name) => (name.as_ref(), Value::from(true)),
            Claim::Expires => ("exp", Value::from(at.as_second() + LIFE_SECS)),
            Claim::IssuedWithin(_) => continue,
            Claim::BodyHash(name, form) => (name.as_ref(), hash(*form, &draft.body)),
            Claim::UrlHash(name, form) => (name.as_ref(), hash(*form, draft.url.as_bytes())),
            Claim::QueryHash => {
                let canonical = atlassian::canonical(&draft.request(), keyring.setting("base_url"));
                ("qsh", hash(HashForm::Hex, canonical.as_bytes()))
            }
        };
        claims.insert(name.to_owned(), value);
    }
    Ok(Value::Object(claims))
}

fn hash(form: HashForm, bytes: &[u8]) -> Value {
    let hash = Sha256::digest(bytes);
    Value::from(match form {
        HashForm::Hex => hex::encode(hash),
        HashForm::Base64 => STANDARD.encode(hash),
        HashForm::Base64Url => URL_SAFE.encode(hash),
    })
}
