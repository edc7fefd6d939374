//! Signing a request as its provider would.

use jiff::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::mac::Key;
use crate::provider::{Layout, Part, Place, Provider, Scheme, TokenKind};
use crate::request::Draft;
use crate::secret::{BadSecret, Keyring, Secret};
use crate::verify::signed_chunks;
use crate::{time, twilio};

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
    #[error("a public key cannot sign; use the private key, which starts with `whsk_`")]
    PublicKey,
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
    mut draft: Draft,
    at: Timestamp,
) -> Result<Draft, CannotSign> {
    let keyring = Keyring::new(provider, vec![secret.clone()])?;
    let fitting = provider.schemes.iter().enumerate();
    let mut fitting = fitting.filter_map(|(n, s)| Some((s, &keyring.keys(n).first()?.1)));
    let (scheme, key) = fitting.next().ok_or(BadSecret::Unfit { number: 0 })?;
    match scheme {
        Scheme::Hmac(hmac) => sign_layout(hmac.layout(), key, &mut draft, at)?,
        Scheme::Ed25519(ed25519) => sign_layout(ed25519.layout(), key, &mut draft, at)?,
        Scheme::Token(token) => {
            use base64::Engine as _;
            let text = secret.expose();
            let value = match token.kind {
                TokenKind::Plain => text.to_owned(),
                TokenKind::Bearer => format!("Bearer {text}"),
                TokenKind::Basic => {
                    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
                }
            };
            set(&mut draft, &token.header, &value)?;
            if let Some(value) = draft.headers.get_mut(token.header.as_ref()) {
                value.set_sensitive(true);
            }
        }
        Scheme::Twilio => twilio::sign(key, &mut draft)
            .ok_or_else(|| CannotSign::Incomplete("the URL or the form".to_owned()))?,
    }
    Ok(draft)
}

fn sign_layout(
    layout: Layout<'_>,
    key: &Key,
    draft: &mut Draft,
    at: Timestamp,
) -> Result<(), CannotSign> {
    let stamp = layout.timestamp.map(|stamp| time::print(at, stamp.format));
    place_stamp(layout, draft, stamp.as_deref())?;
    let tag = {
        let request = draft.request();
        let chunks = signed_chunks(layout, &request, stamp.as_deref())
            .map_err(|rejection| CannotSign::Incomplete(rejection.to_string()))?;
        key.sign(&chunks).ok_or(CannotSign::PublicKey)?
    };
    let signature = format!("{}{}", layout.prefix, tag.encode(layout.encoding));
    place_signature(layout, draft, stamp.as_deref(), &signature)
}

/// Puts the time where it is signed, and a fresh token where one is signed with it.
fn place_stamp(
    layout: Layout<'_>,
    draft: &mut Draft,
    stamp: Option<&str>,
) -> Result<(), CannotSign> {
    let (Some(rule), Some(stamp)) = (layout.timestamp, stamp) else { return Ok(()) };
    match &rule.place {
        Place::Header(name) => set(draft, name, stamp)?,
        // Written together with the signature.
        Place::Label { .. } => {}
        Place::Json(pointer) => {
            // Mailgun writes its time as text, Linear as a number.
            let signed_alone = layout.signed.contains(&Part::Json(pointer.clone()));
            let number = stamp.parse::<i64>().ok().filter(|_| !signed_alone);
            let value = number.map_or_else(|| Value::from(stamp), Value::from);
            edit_body(draft, |body| put(body, pointer, value))?;
        }
    }
    let bare = Sha256::new().chain_update(stamp).chain_update(&draft.body).finalize();
    for part in layout.signed.iter() {
        if let Part::Json(pointer) = part
            && !matches!(&rule.place, Place::Json(stamp) if stamp == pointer)
        {
            let token = hex::encode(&bare[..25]);
            edit_body(draft, |body| put(body, pointer, Value::from(token)))?;
        }
    }
    Ok(())
}

fn place_signature(
    layout: Layout<'_>,
    draft: &mut Draft,
    stamp: Option<&str>,
    signature: &str,
) -> Result<(), CannotSign> {
    match layout.signature {
        Place::Header(name) => set(draft, name, signature),
        Place::Label { header, label, separator } => {
            let mut value = String::new();
            // A time in the same header comes first, as everyone writes it.
            if let (Some(rule), Some(stamp)) = (layout.timestamp, stamp)
                && let Place::Label { header: shared, label, .. } = &rule.place
            {
                if shared.eq_ignore_ascii_case(header) {
                    value = format!("{label}={stamp}{separator}");
                } else {
                    set(draft, shared, &format!("{label}={stamp}"))?;
                }
            }
            value.push_str(&format!("{label}={signature}"));
            set(draft, header, &value)
        }
        Place::Json(pointer) => edit_body(draft, |body| put(body, pointer, Value::from(signature))),
    }
}

fn set(draft: &mut Draft, name: &str, value: &str) -> Result<(), CannotSign> {
    let done = draft.set(name, value);
    done.then_some(()).ok_or_else(|| CannotSign::Incomplete(format!("header `{name}`")))
}

fn edit_body(draft: &mut Draft, edit: impl FnOnce(&mut Value)) -> Result<(), CannotSign> {
    let mut body: Value =
        serde_json::from_slice(&draft.body).map_err(|_| CannotSign::BodyNotObject)?;
    if !body.is_object() {
        return Err(CannotSign::BodyNotObject);
    }
    edit(&mut body);
    draft.body = body.to_string().into_bytes();
    Ok(())
}

/// Sets the value at a pointer, making the objects on the way to it.
pub(crate) fn put(body: &mut Value, pointer: &str, value: Value) {
    let mut at = body;
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry(key).or_insert(Value::Null);
    }
    *at = value;
}
