//! Signing a request as its provider would.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::look::look;
use crate::mac::Key;
use crate::provider::{
    Algorithm, Part, Place, Provider, Scheme, Signature, Token, TokenKind, TokenPlace,
};
use crate::request::{Draft, Request};
use crate::secret::{BadSecret, Keyring, Secret};
use crate::special::Signer;
use crate::verify::{Inputs, signed_chunks};
use crate::{jws, time};

mod again;
mod edit;

pub use again::{CannotResign, can_resign, query_names, resign, shows_secret};
pub(crate) use edit::{put, remove_form_field};

use edit::{set_in_items, set_json};

/// Why a draft cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotSign {
    /// The secret does not fit the provider.
    #[error(transparent)]
    BadSecret(#[from] BadSecret),
    /// A part of the draft that would be signed is missing or cannot be sent.
    #[error("the draft lacks what is signed: {0}")]
    Incomplete(String),
    /// The signature or its time belongs into a body that is no JSON object.
    #[error("the body must be a JSON object, for the signature is put into it")]
    BodyNotObject,
    /// A public key checks signatures and makes none.
    #[error("a public key cannot sign; use the private key: PEM, or what starts with `whsk_`")]
    PublicKey,
    /// Such signatures are checked where a provider makes them, and made by nobody else.
    #[error("signatures of RSA with SHA-1 are checked, not made")]
    Outdated,
}

/// Turns a draft into the request that the provider would send at that time.
///
/// ```
/// use oncebox_verify::{Keyring, SampleEvent, Secret, catalogue, identify, sample, sign, verify};
///
/// let now = "2026-01-02T03:04:05Z".parse()?;
/// let stripe = catalogue::find("stripe").unwrap();
/// let secret = Secret::new("whsec_test");
/// let event = SampleEvent { id: "evt_1", event_type: "invoice.paid", at: now, object: None };
///
/// let draft = sign(stripe, &secret, sample(stripe, &event), now)?;
/// let keyring = Keyring::new(stripe, vec![secret])?;
/// assert!(verify(stripe, &keyring, &draft.request(), now).is_ok());
/// assert_eq!(identify(stripe, &draft.request())?.id, "evt_1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sign(
    provider: &Provider,
    secret: &Secret,
    draft: Draft,
    at: Timestamp,
) -> Result<Draft, CannotSign> {
    let keyring = Keyring::new(provider, vec![secret.clone()])?;
    sign_with(provider, &keyring, draft, at)
}

/// The same for a provider that needs to know more of a source than its secret. The first secret
/// signs.
pub fn sign_with(
    provider: &Provider,
    keyring: &Keyring,
    mut draft: Draft,
    at: Timestamp,
) -> Result<Draft, CannotSign> {
    let fitting = provider.schemes.iter().enumerate();
    let mut fitting = fitting.filter_map(|(n, s)| Some((s, Means::of(keyring, n)?)));
    let (scheme, means) = fitting.next().ok_or(BadSecret::Unfit { number: 0 })?;
    sign_by(provider, scheme, means, &mut draft, at)?;
    Ok(draft)
}

/// What one scheme signs with.
#[derive(Clone, Copy)]
struct Means<'k> {
    keyring: &'k Keyring,
    /// The first key that signs.
    key: &'k Key,
    /// The secret it was made of.
    secret: Option<&'k Secret>,
}

impl<'k> Means<'k> {
    /// For the scheme of this number. Of PayPal's keys the secret is only a part of what is signed.
    fn of(keyring: &'k Keyring, scheme: usize) -> Option<Means<'k>> {
        let keys = keyring.keys(scheme);
        let signs = keys.iter().find(|(_, key)| !matches!(key, Key::Part));
        Some(Means::by(keyring, signs.or(keys.first())?))
    }

    /// With one of its keys.
    fn by(keyring: &'k Keyring, (number, key): &'k (usize, Key)) -> Means<'k> {
        let secrets = keyring.secrets();
        Means { keyring, key, secret: secrets.get(*number).or(secrets.first()) }
    }
}

/// Puts the proof of one scheme into the draft.
fn sign_by(
    provider: &Provider,
    scheme: &Scheme,
    means: Means<'_>,
    draft: &mut Draft,
    at: Timestamp,
) -> Result<(), CannotSign> {
    let Means { keyring, key, secret } = means;
    match scheme {
        Scheme::Signature(signature @ Signature { place: Place::Item(pointer), .. }) => {
            set_in_items(provider, draft, pointer, |item| sign_item(signature, key, item))
        }
        Scheme::Signature(signature) => sign_signature(signature, means, draft, at),
        Scheme::Token(token) => place_token(provider, token, secret.ok_or(BadSecret::None)?, draft),
        Scheme::Jws(jws) => jws::sign(jws, key, keyring, draft, at),
        Scheme::Special(special) => special.sign(&Signer { provider, key, keyring }, draft, at),
    }
}

fn place_token(
    provider: &Provider,
    token: &Token,
    secret: &Secret,
    draft: &mut Draft,
) -> Result<(), CannotSign> {
    let text = secret.expose();
    let value = match token.kind {
        TokenKind::Plain => text.to_owned(),
        TokenKind::Bearer => format!("Bearer {text}"),
        TokenKind::Basic => format!("Basic {}", STANDARD.encode(text)),
    };
    match &token.place {
        TokenPlace::Header(name) => {
            set(draft, name, &value)?;
            if let Some(value) = draft.headers.get_mut(name.as_ref()) {
                value.set_sensitive(true);
            }
            Ok(())
        }
        TokenPlace::Query(name) => {
            add_query(draft, name, &value);
            Ok(())
        }
        TokenPlace::Json(pointer) => set_json(draft, pointer, Value::from(value)),
        TokenPlace::Item(pointer) => {
            set_in_items(provider, draft, pointer, |_| Ok(Value::from(value.as_str())))
        }
    }
}

/// The signature of one item of a batch.
fn sign_item(signature: &Signature, key: &Key, item: &[u8]) -> Result<Value, CannotSign> {
    let (headers, body) = (HeaderMap::new(), b"");
    let request = Request { method: "POST", url: "/", headers: &headers, body };
    let inputs = Inputs { item: Some(item), ..Inputs::default() };
    let chunks = signed_chunks(signature, &request, inputs)
        .map_err(|rejection| CannotSign::Incomplete(rejection.to_string()))?;
    let tag = key.sign(&chunks).ok_or(CannotSign::PublicKey)?;
    Ok(Value::from(format!("{}{}", signature.prefix, tag.encode(signature.encoding))))
}

/// Adds a parameter to the query.
pub(crate) fn add_query(draft: &mut Draft, name: &str, value: &str) {
    let pair = form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
    let mark = if draft.url.contains('?') { '&' } else { '?' };
    draft.url.push(mark);
    draft.url.push_str(&pair);
}

fn sign_signature(
    signature: &Signature,
    means: Means<'_>,
    draft: &mut Draft,
    at: Timestamp,
) -> Result<(), CannotSign> {
    let Means { keyring, key, secret } = means;
    if signature.algorithm == Algorithm::RsaSha1 {
        return Err(CannotSign::Outdated);
    }
    let stamp = signature.timestamp.as_ref().map(|stamp| time::print(at, stamp.format));
    place_stamp(signature, draft, stamp.as_deref())?;
    let tag = {
        let request = draft.request();
        let inputs = Inputs { keyring: Some(keyring), secret, stamp: stamp.as_deref(), item: None };
        let chunks = signed_chunks(signature, &request, inputs)
            .map_err(|rejection| CannotSign::Incomplete(rejection.to_string()))?;
        key.sign(&chunks).ok_or(CannotSign::PublicKey)?
    };
    let written = format!("{}{}", signature.prefix, tag.encode(signature.encoding));
    place_signature(signature, draft, stamp.as_deref(), &written)
}

/// Puts the time where it is signed, and a fresh token where one is signed with it.
fn place_stamp(
    signature: &Signature,
    draft: &mut Draft,
    stamp: Option<&str>,
) -> Result<(), CannotSign> {
    let (Some(rule), Some(stamp)) = (&signature.timestamp, stamp) else { return Ok(()) };
    match &rule.place {
        Place::Header(name) => set(draft, name, stamp)?,
        Place::Json(pointer) => {
            // Mailgun writes its time as text, Linear as a number.
            let signed_alone = signature.signed.contains(&Part::Json(pointer.clone()));
            let number = stamp.parse::<i64>().ok().filter(|_| !signed_alone);
            let value = number.map_or_else(|| Value::from(stamp), Value::from);
            set_json(draft, pointer, value)?;
        }
        // Written together with the signature.
        _ => {}
    }
    let bare = Sha256::new().chain_update(stamp).chain_update(&draft.body).finalize();
    for part in signature.signed.iter() {
        if let Part::Json(pointer) = part
            && !matches!(&rule.place, Place::Json(stamp) if stamp == pointer)
        {
            // A type that is signed with the time is no token.
            let is_there = look(&draft.body, &[pointer]).is_ok_and(|found| found[0].is_some());
            if !is_there {
                set_json(draft, pointer, Value::from(hex::encode(&bare[..25])))?;
            }
        }
    }
    Ok(())
}

fn place_signature(
    signature: &Signature,
    draft: &mut Draft,
    stamp: Option<&str>,
    written: &str,
) -> Result<(), CannotSign> {
    match &signature.place {
        Place::Header(name) | Place::Repeated(name) => set(draft, name, written),
        Place::AnyOf(names) => set(draft, names.first().map_or("", AsRef::as_ref), written),
        Place::Numbered(before) => set(draft, &format!("{before}1"), written),
        Place::Label { header, label, separators } => {
            let separator = separators.chars().next().unwrap_or(',');
            let mut value = String::new();
            // A time in the same header comes first, as everyone writes it.
            if let (Some(rule), Some(stamp)) = (&signature.timestamp, stamp)
                && let Place::Label { header: shared, label, .. } = &rule.place
            {
                if shared.eq_ignore_ascii_case(header) {
                    value = format!("{label}={stamp}{separator}");
                } else {
                    set(draft, shared, &format!("{label}={stamp}"))?;
                }
            }
            value.push_str(&format!("{label}={written}"));
            set(draft, header, &value)
        }
        Place::First { header, .. } => set(draft, header, written),
        Place::Rest { header, separator } => {
            set(draft, header, &format!("{}{separator}{written}", stamp.unwrap_or_default()))
        }
        Place::Query(name) => {
            add_query(draft, name, written);
            Ok(())
        }
        Place::Form(name) => {
            let pair = form_urlencoded::Serializer::new(String::new());
            let pair = { pair }.append_pair(name, written).finish();
            if !draft.body.is_empty() {
                draft.body.push(b'&');
            }
            draft.body.extend_from_slice(pair.as_bytes());
            Ok(())
        }
        Place::Json(pointer) | Place::Item(pointer) => {
            set_json(draft, pointer, Value::from(written))
        }
    }
}

fn set(draft: &mut Draft, name: &str, value: &str) -> Result<(), CannotSign> {
    let done = draft.set(name, value);
    done.then_some(()).ok_or_else(|| CannotSign::Incomplete(format!("header `{name}`")))
}
