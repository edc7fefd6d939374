//! Answering what a provider asks before it sends events, or between them.

use std::borrow::Cow;

use serde_json::{Map, Value};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::look::look;
use crate::mac::Key;
use crate::provider::{Algorithm, Encoding, Field, Handshake, Piece, Provider, Said, Wants};
use crate::request::{Reply, Request};
use crate::secret::{Keyring, Secret};

/// The largest body of a question, or of a request that tells a secret. No provider asks more.
pub const QUESTION_BYTES_MAX: usize = 64 << 10;

/// The longest text that is sent back.
const ECHO_BYTES_MAX: usize = 1024;

/// The longest text that is hashed with a secret for whoever asks.
const HASHED_BYTES_MAX: usize = 128;

/// The answer to a handshake, if the request is one.
///
/// A question that carries no signature is answered with `verified` false, before anything else
/// is looked at; one that is signed like an event only once its signature was found right. A body
/// over [`QUESTION_BYTES_MAX`] is no question and is not looked at.
///
/// ```
/// use oncebox_verify::{Keyring, Request, Secret, catalogue, handshake};
///
/// let dropbox = catalogue::find("dropbox").unwrap();
/// let keyring = Keyring::new(dropbox, vec![Secret::new("app-secret")])?;
/// let headers = http::HeaderMap::new();
/// let url = "/in/dropbox?challenge=abc123";
/// let request = Request { method: "GET", url, headers: &headers, body: b"" };
///
/// let reply = handshake(dropbox, &keyring, &request, false).unwrap();
/// assert_eq!((reply.status, reply.body.as_str()), (200, "abc123"));
/// # Ok::<(), oncebox_verify::BadSecret>(())
/// ```
pub fn handshake(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
    verified: bool,
) -> Option<Reply> {
    answer(provider, keyring, request, verified, 0)
}

/// The answer to a handshake that was found to be signed, made with the secret that signed it:
/// `secret` counts from 0, as [`Verified::secret`](crate::Verified::secret) does.
///
/// ```
/// use oncebox_verify::{Keyring, Request, Secret, catalogue, signed_handshake};
///
/// let zoom = catalogue::find("zoom").unwrap();
/// let keyring = Keyring::new(zoom, vec![Secret::new("the new one"), Secret::new("the old one")])?;
/// let headers = http::HeaderMap::new();
/// let body = br#"{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}"#;
/// let request = Request { method: "POST", url: "/in/zoom", headers: &headers, body };
///
/// let answered = |secret| signed_handshake(zoom, &keyring, &request, secret).unwrap().body;
/// assert_ne!(answered(0), answered(1));
/// # Ok::<(), oncebox_verify::BadSecret>(())
/// ```
pub fn signed_handshake(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
    secret: usize,
) -> Option<Reply> {
    answer(provider, keyring, request, true, secret)
}

fn answer(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
    verified: bool,
    secret: usize,
) -> Option<Reply> {
    if request.body.len() > QUESTION_BYTES_MAX {
        return None;
    }
    let mut asked = provider.handshakes.iter().filter(|handshake| handshake.signed == verified);
    asked.find_map(|handshake| Asked { handshake, keyring, request, secret }.answer())
}

/// The secret that a provider tells in a request, if this is how it does. Heed it only in a
/// window that an operator opened for it.
pub fn pairing_secret(provider: &Provider, request: &Request<'_>) -> Option<Secret> {
    let pairing = provider.pairing?;
    if request.method != "POST" || request.body.len() > QUESTION_BYTES_MAX {
        return None;
    }
    let text = read(&pairing.secret, request)?;
    let sound = (8..=ECHO_BYTES_MAX).contains(&text.len()) && text.chars().all(is_plain);
    sound.then(|| Secret::new(text.into_owned()))
}

/// What the provider hears once its secret is kept.
pub fn paired(provider: &Provider, secret: &Secret) -> Reply {
    let echo = provider.pairing.and_then(|pairing| pairing.echo.as_ref());
    let headers = echo.map(|name| (name.to_string(), secret.expose().to_owned()));
    let headers = headers.into_iter().collect();
    Reply { status: 200, content_type: "", headers, body: String::new() }
}

/// A question and what its answer may be made of.
struct Asked<'a> {
    handshake: &'a Handshake,
    keyring: &'a Keyring,
    request: &'a Request<'a>,
    /// The secret that answers, by its number.
    secret: usize,
}

impl Asked<'_> {
    fn answer(&self) -> Option<Reply> {
        let Asked { handshake, request, .. } = self;
        if !handshake.methods.iter().any(|method| method == request.method) {
            return None;
        }
        match &handshake.wants {
            Wants::Method => {}
            Wants::Has(field) => drop(read(field, request)?),
            Wants::Is(field, text) => drop(read(field, request).filter(|found| found == text)?),
            Wants::IsWithout(field, text, other) => {
                read(field, request).filter(|found| found == text)?;
                is_missing(other, request).then_some(())?;
            }
            Wants::EmptyBody => request.body.is_empty().then_some(())?,
        }
        if let Some((field, key)) = &handshake.token
            && !self.knows_token(&read(field, request)?, key)
        {
            return None;
        }
        let challenge = match &handshake.challenge {
            Some(field) => read(field, request).filter(|text| is_echo(text))?,
            None => Cow::Borrowed(""),
        };
        let (content_type, body) = self.body(&challenge)?;
        let header = |(name, piece): &(Cow<'static, str>, Piece)| {
            self.piece(piece, &challenge).map(|value| (name.to_string(), value))
        };
        // A header that the question has nothing for is left out.
        let headers = handshake.headers.iter().filter_map(header).collect();
        Some(Reply { status: handshake.status, content_type, headers, body })
    }

    /// Whether the token is the one the operator gave the provider: the setting, or a secret
    /// where nothing else is set.
    fn knows_token(&self, told: &str, key: &str) -> bool {
        let token = Key::token(told.as_bytes());
        match self.keyring.setting(key) {
            Some(known) => token.is_token(known.as_bytes()),
            None => {
                let secrets = self.keyring.secrets().iter();
                secrets
                    .fold(false, |found, secret| token.is_token(secret.expose().as_bytes()) | found)
            }
        }
    }

    fn body(&self, challenge: &str) -> Option<(&'static str, String)> {
        let join = |pieces: &[Piece]| -> Option<String> {
            pieces.iter().map(|piece| self.piece(piece, challenge)).collect()
        };
        Some(match &self.handshake.says {
            Said::Nothing => ("", String::new()),
            Said::Text(pieces) => ("text/plain", join(pieces)?),
            Said::Exactly(json) => ("application/json", json.to_string()),
            Said::Json(members) => {
                let mut object = Map::new();
                for (key, pieces) in members.iter() {
                    object.insert(key.to_string(), Value::from(join(pieces)?));
                }
                ("application/json", Value::Object(object).to_string())
            }
        })
    }

    fn piece(&self, piece: &Piece, challenge: &str) -> Option<String> {
        match piece {
            Piece::Text(text) => Some(text.to_string()),
            Piece::Challenge => Some(challenge.to_owned()),
            Piece::Field(field) => {
                let text = read(field, self.request).filter(|text| is_echo(text));
                text.map(Cow::into_owned)
            }
            Piece::Setting(key) => self.keyring.setting(key).map(str::to_owned),
            Piece::Mac(algorithm, encoding) => {
                is_hashable(challenge).then_some(())?;
                let secret = self.keyring.secrets().get(self.secret)?;
                let key = Key::hmac(*algorithm, secret.expose().as_bytes());
                Some(key.mac([challenge.as_bytes()]).encode(*encoding))
            }
            Piece::BraintreeMac => {
                // Payloads are signed in the same way, and no payload is so short.
                let is_hex = challenge.bytes().all(|byte| byte.is_ascii_hexdigit());
                let secret = self.keyring.secrets().first()?.expose();
                let key = Key::hmac(Algorithm::HmacSha1, &Sha1::digest(secret));
                let mac = || key.mac([challenge.as_bytes()]).encode(Encoding::Hex);
                ((20..=32).contains(&challenge.len()) && is_hex).then(mac)
            }
            Piece::Sha256WithSettingAndUrl(key) => {
                let url = self.request.url.split('?').next().unwrap_or_default();
                let hash = Sha256::new()
                    .chain_update(challenge)
                    .chain_update(self.keyring.setting(key)?)
                    .chain_update(url);
                Some(hex::encode(hash.finalize()))
            }
        }
    }
}

/// Whether text may be sent back: short, and nothing that a terminal or a header would act on.
fn is_echo(text: &str) -> bool {
    !text.is_empty() && text.len() <= ECHO_BYTES_MAX && !text.chars().any(char::is_control)
}

/// Whether text may be hashed with a secret for whoever asks. With the text of an event this would
/// sign it, so there is none of what an event is written with: no separator between a time and a
/// body, no bracket, quote or tag, and no `=` between a name and a value.
fn is_hashable(text: &str) -> bool {
    let unpadded = text.trim_end_matches('=');
    let is_padded = text.len() - unpadded.len() <= 2;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/".contains(&byte);
    is_padded
        && !unpadded.is_empty()
        && text.len() <= HASHED_BYTES_MAX
        && unpadded.bytes().all(plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_graphic()
}

/// Whether nothing at all is in the place of a field.
fn is_missing(field: &Field, request: &Request<'_>) -> bool {
    match field {
        Field::Json(pointer) => look(request.body, &[pointer])
            .is_ok_and(|found| found.first().is_none_or(Option::is_none)),
        _ => read(field, request).is_none(),
    }
}

/// The one value of a field; none where it is missing or there twice.
fn read<'a>(field: &Field, request: &Request<'a>) -> Option<Cow<'a, str>> {
    fn one<'a>(mut values: impl Iterator<Item = Cow<'a, str>>) -> Option<Cow<'a, str>> {
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }
    match field {
        Field::Json(pointer) => look(request.body, &[pointer]).ok()?.first().copied()??.text(),
        Field::Query(name) => one(request.query(name)),
        Field::Form(name) => one(request.form(name)),
        Field::Header(name) => {
            let values = request.headers.get_all(name.as_ref()).iter();
            one(values.filter_map(|value| value.to_str().ok().map(Cow::Borrowed)))
        }
        Field::Item(_)
        | Field::Outer(_)
        | Field::Within(..)
        | Field::KeyBeside(_)
        | Field::Xml(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::look::LOOKS;

    /// A large body, sent to a source whose provider asks questions, is looked at for
    /// none of them.
    #[test]
    fn a_large_body_is_no_question_and_is_not_looked_at() {
        let headers = http::HeaderMap::new();
        let large = format!("[{}1]", "1,".repeat(QUESTION_BYTES_MAX / 2));
        let small = &large[..2];
        let mut asked = 0;
        for provider in catalogue::ALL.iter().copied() {
            let keyring = Keyring::new(provider, vec![Secret::new("canary-secret")]);
            let Ok(keyring) = keyring else { continue };
            let looks = |body: &str| {
                let before = LOOKS.get();
                let body = body.as_bytes();
                let request = Request { method: "POST", url: "/", headers: &headers, body };
                assert_eq!(handshake(provider, &keyring, &request, false), None);
                assert!(pairing_secret(provider, &request).is_none());
                LOOKS.get() - before
            };
            asked += looks(small);
            assert_eq!(looks(&large), 0, "{}", provider.name);
        }
        assert!(asked > 0, "no entry asks a question in JSON");
    }
}
