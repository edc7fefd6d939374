//! What a secret or a setting becomes for each scheme of its provider.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use sha1::Sha1;
use sha2::Digest as _;
use unicode_normalization::UnicodeNormalization as _;
use zeroize::Zeroize as _;

use super::{BadSecret, Keyring, Secret, Settings};
use crate::asymmetric::Pair;
use crate::ed25519::{Ed25519Key, is_key};
use crate::jws;
use crate::mac::Key;
use crate::pem::is_pem;
use crate::provider::{
    ANY, KeyForm, Part, Provider, SCHEME, Scheme, Setting, Signature, Text, Token, TokenKind,
};

impl Keyring {
    /// The same keyring with keys for every way to prove a request, where a source accepts only
    /// some. None where that changes nothing.
    pub(crate) fn for_every_way(&self, provider: &Provider) -> Option<Keyring> {
        provider.choice.filter(|_| !self.secrets.is_empty())?;
        let mut settings = self.settings.clone();
        settings.insert(SCHEME.to_owned(), ANY.to_owned());
        Keyring::with_settings(provider, self.secrets.clone(), settings).ok()
    }
}

/// Whether some key of the provider is fetched, and the settings say from where.
pub(super) fn fetches_any(provider: &Provider, settings: &Settings) -> Result<bool, BadSecret> {
    let mut any = false;
    for scheme in provider.schemes.iter() {
        any |= match scheme {
            Scheme::Jws(jws) => jws::can_fetch(jws, settings)?,
            scheme => scheme.fetches_keys() && !scheme.signs_secret(),
        };
    }
    Ok(any)
}

/// The schemes that a source accepts by its setting `scheme`, in the order they are tried.
pub(super) fn accepted_schemes(
    provider: &Provider,
    settings: &Settings,
) -> Result<Vec<usize>, BadSecret> {
    let said = settings.get(SCHEME).map(String::as_str).filter(|word| !word.is_empty());
    provider.accepted_schemes(said).ok_or_else(|| {
        let known: Vec<&str> = provider.choice.iter().flat_map(|choice| choice.words()).collect();
        let said = said.unwrap_or_default().to_owned();
        BadSecret::UnknownScheme { said, known: known.join(", ") }
    })
}

/// Drops the keys of schemes that a source does not accept; an error where secrets leave none.
pub(super) fn keep_accepted(
    provider: &Provider,
    accepted: &[usize],
    keys: &mut [Vec<(usize, Key)>],
    has_secrets: bool,
) -> Result<(), BadSecret> {
    for (_, row) in keys.iter_mut().enumerate().filter(|(number, _)| !accepted.contains(number)) {
        row.clear();
    }
    let fetches = |number: &usize| provider.schemes.get(*number).is_some_and(Scheme::fetches_keys);
    let is_empty = keys.iter().all(Vec::is_empty);
    match has_secrets && is_empty && !accepted.iter().any(fetches) {
        true => Err(BadSecret::Unfit { number: 0 }),
        false => Ok(()),
    }
}

/// Whether a source that has a key itself may do without a setting.
pub(super) fn is_excused(provider: &Provider, setting: &Setting, has_key: bool) -> bool {
    provider.schemes.iter().any(|scheme| match scheme {
        Scheme::Special(special) => special.excuses(&setting.key, has_key),
        _ => false,
    })
}

/// Makes keys of a public key of the provider, under numbers after those of the secrets.
pub(super) fn pin(
    provider: &Provider,
    setting: &'static str,
    number: usize,
    text: &str,
    keys: &mut [Vec<(usize, Key)>],
) -> Result<(), BadSecret> {
    let bad = || BadSecret::BadSetting { key: Text::Borrowed(setting) };
    let secret = Secret::new(text.trim());
    let mut fits = Err(bad());
    for (scheme, row) in provider.schemes.iter().zip(keys) {
        if !scheme.takes_public_key() {
            continue;
        }
        let key = match scheme {
            Scheme::Jws(jws) => jws::pinned(jws, secret.expose()),
            _ => key(scheme, number, &secret).map_err(|_| bad())?,
        };
        if let Some(key) = key {
            row.push((number, key));
            fits = Ok(());
        }
    }
    fits
}

/// Makes the key of one scheme, or none if the secret belongs to another scheme.
pub(super) fn key(
    scheme: &Scheme,
    number: usize,
    secret: &Secret,
) -> Result<Option<Key>, BadSecret> {
    let text = secret.expose();
    if text.trim().is_empty() {
        return Err(BadSecret::Empty { number });
    }
    // A file of PEM ends with a line break.
    let text = if is_pem(text) { text.trim() } else { text };
    if text.trim() != text {
        return Err(BadSecret::Untrimmed { number });
    }
    match scheme {
        Scheme::Signature(signature) => signature_key(signature, number, text),
        // Who knows a public key must not be able to pass it off as a shared secret.
        _ if is_key(text) => Ok(None),
        Scheme::Token(_) if is_pem(text) => Ok(None),
        Scheme::Token(token) => token_key(token, number, text),
        Scheme::Jws(jws) => jws::key(jws, number, text),
        Scheme::Special(special) if is_pem(text) && !special.takes_public_key() => Ok(None),
        Scheme::Special(special) => special.key(number, text),
    }
}

/// Whether a text is a public key by its looks, and not the name of something.
fn is_public(text: &str) -> bool {
    is_pem(text) || text.starts_with('{')
}

/// The secret says whether it is a key of a pair. Only a scheme of that kind takes it, and takes
/// nothing else, so that no public key ever becomes the key of a hash.
fn signature_key(
    signature: &Signature,
    number: usize,
    text: &str,
) -> Result<Option<Key>, BadSecret> {
    match signature.key {
        KeyForm::Whpk if is_key(text) => {
            Ed25519Key::decode(number, text).map(|key| Some(Key::Ed25519(Box::new(key))))
        }
        KeyForm::Whpk => Ok(None),
        KeyForm::Certificate(_) if signature.signed.contains(&Part::Secret) && !is_public(text) => {
            Ok(Some(Key::Part))
        }
        KeyForm::Public | KeyForm::Certificate(_) => {
            let pair = Pair::decode(signature.algorithm, number, text)?;
            Ok(Some(Key::Pair(Arc::new(pair))))
        }
        _ if is_key(text) || is_pem(text) => Ok(None),
        _ => {
            let Some(mut bytes) = decode(&signature.key, number, text)? else { return Ok(None) };
            let key = Key::hmac(signature.algorithm, &bytes);
            bytes.zeroize();
            Ok(Some(key))
        }
    }
}

fn token_key(token: &Token, number: usize, text: &str) -> Result<Option<Key>, BadSecret> {
    if token.refuse_whsec && text.starts_with("whsec_") {
        return Ok(None);
    }
    if token.kind == TokenKind::Basic && !text.contains(':') {
        return Err(BadSecret::NoColon { number });
    }
    Ok(Some(Key::token(text.as_bytes())))
}

/// The bytes of a key, or none if such a secret belongs to another scheme.
fn decode(form: &KeyForm, number: usize, text: &str) -> Result<Option<Vec<u8>>, BadSecret> {
    let whsec = text.strip_prefix("v1,").unwrap_or(text).strip_prefix("whsec_");
    let base64 = |text: &str| match STANDARD_PAD_INDIFFERENT.decode(text) {
        // HMAC takes an empty key, and then anyone can sign.
        Ok(bytes) if bytes.is_empty() => Err(BadSecret::Empty { number }),
        Ok(bytes) => Ok(Some(bytes)),
        Err(_) => Err(BadSecret::NotBase64 { number }),
    };
    match form {
        KeyForm::Text => Ok(Some(text.as_bytes().to_vec())),
        KeyForm::Nfkd => Ok(Some(text.nfkd().collect::<String>().into_bytes())),
        KeyForm::Sha1OfText => Ok(Some(Sha1::digest(text).to_vec())),
        KeyForm::AfterSignkey => Ok(Some(after_signkey(text).as_bytes().to_vec())),
        KeyForm::Base64 => base64(text),
        KeyForm::Hex => hex::decode(text).map(Some).map_err(|_| BadSecret::NotHex { number }),
        KeyForm::Whsec => base64(whsec.unwrap_or(text)),
        KeyForm::WhsecOnly => whsec.map_or(Ok(None), base64),
        KeyForm::WhsecIfBase64 => Ok(whsec.and_then(|text| base64(text).ok().flatten())),
        KeyForm::WhsecOrText => whsec.map_or_else(|| Ok(Some(text.as_bytes().to_vec())), base64),
        // Those make keys of another kind.
        KeyForm::Whpk | KeyForm::Public | KeyForm::Certificate(_) => Ok(None),
    }
}

/// What follows `signkey-prod-` and its like.
fn after_signkey(text: &str) -> &str {
    let rest = text.strip_prefix("signkey-").and_then(|rest| rest.split_once('-'));
    rest.map_or(text, |(_, key)| key)
}
