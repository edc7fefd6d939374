//! What the claims of a token must say.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_PAD_INDIFFERENT, URL_SAFE_PAD_INDIFFERENT};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::atlassian;
use super::compact::Object;
use crate::provider::{Claim, HashForm, Text};
use crate::rejection::Rejection;
use crate::special::Trial;
use crate::verify::check_age;

/// How far the clock of the sender may be from ours, in seconds.
const LEEWAY_SECS: u32 = 60;

/// Checks every claim, the times last: a rejection about time means that all else is right.
/// Returns when the token was issued.
pub(super) fn check(
    claims: &[Claim],
    payload: &[u8],
    trial: &Trial<'_>,
) -> Result<Option<Timestamp>, Rejection> {
    let why = "its claims are not one JSON object with each key once";
    let said: Object = serde_json::from_slice(payload).map_err(|_| Rejection::BadToken { why })?;
    for claim in claims {
        check_one(claim, &said, trial)?;
    }
    check_times(claims, &said, trial.received_at)
}

fn check_one(claim: &Claim, said: &Object, trial: &Trial<'_>) -> Result<(), Rejection> {
    let setting = |key: &Text| {
        let said = trial.keyring.setting(key);
        said.ok_or_else(|| Rejection::NoSetting { key: key.clone() })
    };
    match claim {
        Claim::Is(name, text) => is(said, name, text),
        Claim::IsSetting(name, key) => is(said, name, setting(key)?),
        Claim::AnyIsSetting(names, key) => {
            let text = setting(key)?;
            let any = names.iter().any(|name| is(said, name, text).is_ok());
            let first = names.first().map_or("", AsRef::as_ref);
            if any { Ok(()) } else { Err(wrong(first)) }
        }
        Claim::MayBeSetting(name, key) => match trial.keyring.setting(key) {
            Some(text) => is(said, name, text),
            None => Ok(()),
        },
        Claim::IsUrl(name) => is(said, name, trial.request.url),
        Claim::IsTrue(name) => match said.get(name) {
            Some(Value::Bool(true)) => Ok(()),
            Some(_) => Err(wrong(name)),
            None => Err(missing(name)),
        },
        Claim::BodyHash(name, form) => {
            let body = trial.request.body;
            match said.get(name) {
                None if body.is_empty() => Ok(()),
                found => is_hash(found, name, *form, body)
                    .and_then(|same| same.then_some(()).ok_or(Rejection::BodyHashMismatch)),
            }
        }
        Claim::UrlHash(name, form) => {
            let url = trial.request.url.as_bytes();
            is_hash(said.get(name), name, *form, url)
                .and_then(|same| same.then_some(()).ok_or(Rejection::UrlHashMismatch))
        }
        Claim::QueryHash => {
            let canonical = atlassian::canonical(trial.request, trial.keyring.setting("base_url"));
            is_hash(said.get("qsh"), "qsh", HashForm::Hex, canonical.as_bytes())
                .and_then(|same| same.then_some(()).ok_or(Rejection::UrlHashMismatch))
        }
        // Times are checked when all else was found right.
        Claim::Expires | Claim::IssuedWithin(_) => Ok(()),
    }
}

/// Whether a claim is this text. An audience may also be a list with it.
fn is(said: &Object, name: &str, text: &str) -> Result<(), Rejection> {
    let same = match said.get(name) {
        None | Some(Value::Null) => return Err(missing(name)),
        Some(Value::String(said)) => said == text,
        Some(Value::Array(all)) if name == "aud" => {
            all.iter().any(|one| one.as_str() == Some(text))
        }
        Some(_) => false,
    };
    if same { Ok(()) } else { Err(wrong(name)) }
}

fn missing(name: &str) -> Rejection {
    Rejection::MissingClaim { name: Text::Owned(name.to_owned()) }
}

/// What is wrong, in the words for who a token is from, for, and about.
fn wrong(name: &str) -> Rejection {
    match name {
        "aud" => Rejection::BadAudience,
        "iss" => Rejection::BadIssuer,
        "sub" | "email" => Rejection::BadSubject,
        name => Rejection::BadClaim { name: Text::Owned(name.to_owned()) },
    }
}

fn is_hash(
    found: Option<&Value>,
    name: &str,
    form: HashForm,
    bytes: &[u8],
) -> Result<bool, Rejection> {
    let text = found.ok_or_else(|| missing(name))?.as_str().ok_or_else(|| wrong(name))?;
    let hash = match form {
        HashForm::Hex => hex::decode(text).ok(),
        HashForm::Base64 => STANDARD_PAD_INDIFFERENT.decode(text).ok(),
        HashForm::Base64Url => URL_SAFE_PAD_INDIFFERENT.decode(text).ok(),
    };
    Ok(hash.is_some_and(|hash| hash == Sha256::digest(bytes).as_slice()))
}

fn check_times(
    claims: &[Claim],
    said: &Object,
    now: Timestamp,
) -> Result<Option<Timestamp>, Rejection> {
    let issued_at = time(said, "iat")?;
    let expires_at = time(said, "exp")?;
    let begins_at = time(said, "nbf")?;
    let leeway = i64::from(LEEWAY_SECS);
    for claim in claims {
        match (claim, issued_at, expires_at) {
            (Claim::Expires, _, None) => return Err(missing("exp")),
            (Claim::IssuedWithin(_), None, _) => return Err(missing("iat")),
            (Claim::IssuedWithin(limit), Some(issued), _) => check_age(issued, now, *limit)?,
            _ => {}
        }
    }
    if let Some(end) = expires_at {
        let over = now.as_second().saturating_sub(end.as_second());
        if over >= leeway {
            return Err(Rejection::TokenExpired { ago_secs: over.unsigned_abs() });
        }
    }
    if let Some(begin) = begins_at {
        let ahead = begin.as_second().saturating_sub(now.as_second());
        if ahead > leeway {
            return Err(Rejection::TokenNotYetValid { ahead_secs: ahead.unsigned_abs() });
        }
    }
    Ok(issued_at)
}

/// A time in seconds, perhaps with a fraction, which is cut off.
fn time(said: &Object, name: &str) -> Result<Option<Timestamp>, Rejection> {
    let bad = || Rejection::BadTimestamp { place: Text::Owned(name.to_owned()) };
    let seconds = match said.get(name) {
        None => return Ok(None),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(seconds) => seconds,
            // Cutting off what no time has, such as 1e300, leaves no time either.
            None => number.as_f64().filter(|n| n.abs() < 1e15).ok_or_else(bad)? as i64,
        },
        Some(_) => return Err(bad()),
    };
    Timestamp::from_second(seconds).map(Some).map_err(|_| bad())
}
