//! Signatures: making one, decoding one, comparing two in constant time.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD, URL_SAFE_PAD_INDIFFERENT};
use hmac::{Hmac, KeyInit as _};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use subtle::ConstantTimeEq as _;

use crate::asymmetric::Pair;
use crate::ed25519::{Ed25519Key, SIGNATURE_LEN};
use crate::jwk::JwsKey;
use crate::provider::{Algorithm, Encoding};

/// The longest signatures that are kept without memory of their own: SHA-512 and Ed25519.
const SHORT_MAX: usize = SIGNATURE_LEN;

/// The longest signatures there are: RSA with 8192 bits.
const LONG_MAX: usize = 1024;

/// The signs of base64 that are written otherwise in a URL.
const PERCENT: [(&str, &str); 3] = [("+", "%2B"), ("/", "%2F"), ("=", "%3D")];

/// A secret made ready for one scheme. Its kind was decided by the secret and the
/// scheme, before any request came, and decides how signatures are checked.
pub(crate) enum Key {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Box<Hmac<Sha512>>),
    /// For a plain hash, which has no key: the secret is a part of what is hashed.
    Hash(Algorithm),
    Ed25519(Box<Ed25519Key>),
    Pair(Arc<Pair>),
    /// For a secret that is no key but a part of what is signed; the key is a certificate's.
    Part,
    /// The keys of tokens that one text holds.
    Jws(Vec<JwsKey>),
    /// The hash of a token, so that comparing tells nothing of its length.
    Token([u8; 32]),
    /// Several keys made of one secret, for a scheme that knows which is which.
    Several(Vec<Key>),
}

impl Key {
    /// The key of an HMAC, or of a plain hash.
    pub(crate) fn hmac(algorithm: Algorithm, bytes: &[u8]) -> Key {
        const ANY: &str = "HMAC takes keys of any length";
        match algorithm {
            Algorithm::HmacSha1 => Key::Sha1(Hmac::new_from_slice(bytes).expect(ANY)),
            Algorithm::HmacSha256 => Key::Sha256(Hmac::new_from_slice(bytes).expect(ANY)),
            Algorithm::HmacSha512 => Key::Sha512(Box::new(Hmac::new_from_slice(bytes).expect(ANY))),
            other => Key::Hash(other),
        }
    }

    pub(crate) fn token(bytes: &[u8]) -> Key {
        Key::Token(Sha256::digest(bytes).into())
    }

    /// The MAC over all chunks. Empty for a key that makes none.
    pub(crate) fn mac<'a>(&self, chunks: impl IntoIterator<Item = &'a [u8]>) -> Tag {
        fn run<'a, M: hmac::Mac>(mut mac: M, chunks: impl IntoIterator<Item = &'a [u8]>) -> Tag {
            for chunk in chunks {
                mac.update(chunk);
            }
            Tag::new(&mac.finalize().into_bytes())
        }
        match self {
            Key::Sha1(key) => run(key.clone(), chunks),
            Key::Sha256(key) => run(key.clone(), chunks),
            Key::Sha512(key) => run(Hmac::<Sha512>::clone(key), chunks),
            Key::Hash(algorithm) => hash(*algorithm, chunks),
            Key::Ed25519(_)
            | Key::Pair(_)
            | Key::Part
            | Key::Jws(_)
            | Key::Token(_)
            | Key::Several(_) => Tag::new(&[]),
        }
    }

    /// Whether one of the signatures was made with this key over the message.
    pub(crate) fn made_any(&self, given: &[Tag], message: &Message<'_>) -> bool {
        match self {
            Key::Ed25519(key) => {
                given.iter().any(|given| key.verifies(message.whole(), given.as_bytes()))
            }
            Key::Pair(key) => {
                given.iter().any(|given| key.verifies(message.whole(), given.as_bytes()))
            }
            _ => {
                let tag = self.mac(message.chunks.iter().map(AsRef::as_ref));
                given.iter().any(|given| given.matches(&tag))
            }
        }
    }

    /// The signature over all chunks; none if the key can only check one.
    pub(crate) fn sign(&self, chunks: &[Cow<'_, [u8]>]) -> Option<Tag> {
        match self {
            Key::Ed25519(key) => key.sign(&chunks.concat()).map(|signature| Tag::new(&signature)),
            Key::Part => None,
            Key::Pair(key) => key.sign(&chunks.concat()).map(|signature| Tag::new(&signature)),
            _ => Some(self.mac(chunks.iter().map(AsRef::as_ref))),
        }
    }

    /// The key pair for an algorithm, where this is one or has one.
    pub(crate) fn pair(&self, algorithm: Algorithm) -> Option<Arc<Pair>> {
        match self {
            Key::Pair(pair) if pair.algorithm() == algorithm => Some(pair.clone()),
            Key::Several(keys) => keys.iter().find_map(|key| key.pair(algorithm)),
            _ => None,
        }
    }

    /// Whether this is a key pair, or several.
    pub(crate) fn is_pair(&self) -> bool {
        match self {
            Key::Pair(_) => true,
            Key::Several(keys) => keys.iter().any(Key::is_pair),
            _ => false,
        }
    }

    /// The key that signs tokens: a shared secret, else the first whose private half is known.
    pub(crate) fn jws_signer(&self) -> Option<&JwsKey> {
        let signs = || self.jws().iter().filter(|key| key.sign(b"").is_some());
        signs().find(|key| key.is_shared()).or_else(|| signs().next())
    }

    /// The keys of tokens; none for a key of another kind.
    pub(crate) fn jws(&self) -> &[JwsKey] {
        if let Key::Jws(keys) = self { keys } else { &[] }
    }

    /// Whether `presented` is the token, in constant time.
    pub(crate) fn is_token(&self, presented: &[u8]) -> bool {
        let hash: [u8; 32] = Sha256::digest(presented).into();
        matches!(self, Key::Token(token) if bool::from(token.ct_eq(&hash)))
    }
}

/// What is signed, in chunks, so that a MAC needs no copy of the body. A key pair needs the whole,
/// which is put together once, however many keys are tried.
pub(crate) struct Message<'a> {
    chunks: Vec<Cow<'a, [u8]>>,
    whole: OnceCell<Vec<u8>>,
}

impl<'a> Message<'a> {
    pub(crate) fn new(chunks: Vec<Cow<'a, [u8]>>) -> Message<'a> {
        Message { chunks, whole: OnceCell::new() }
    }

    fn whole(&self) -> &[u8] {
        match self.chunks.as_slice() {
            [one] => one,
            many => self.whole.get_or_init(|| many.concat()),
        }
    }
}

/// A plain hash over all chunks; empty for what is no hash.
pub(crate) fn hash<'a>(algorithm: Algorithm, chunks: impl IntoIterator<Item = &'a [u8]>) -> Tag {
    fn run<'a, D: sha2::Digest>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Tag {
        let mut hash = D::new();
        for chunk in chunks {
            hash.update(chunk);
        }
        Tag::new(&hash.finalize())
    }
    match algorithm {
        Algorithm::Sha1 => run::<Sha1>(chunks),
        Algorithm::Sha256 => run::<Sha256>(chunks),
        _ => Tag::new(&[]),
    }
}

/// A signature. Short ones are in a fixed buffer, so that decoding one needs no memory.
#[derive(Clone)]
pub(crate) enum Tag {
    Short { bytes: [u8; SHORT_MAX], len: usize },
    Long(Vec<u8>),
}

impl Tag {
    pub(crate) fn new(mac: &[u8]) -> Tag {
        if mac.len() > SHORT_MAX {
            return Tag::Long(mac.to_vec());
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..mac.len()].copy_from_slice(mac);
        Tag::Short { bytes, len: mac.len() }
    }

    /// Decodes a signature of exactly `len` bytes; no other text is one. Without a length, of at
    /// most as many as the longest has.
    pub(crate) fn decode(text: &str, encoding: Encoding, len: Option<usize>) -> Option<Tag> {
        let Some(len) = len else { return Tag::decode_any(text, encoding) };
        // Base64 decoders ask for room up to the next multiple of three.
        let mut buffer = [0; SHORT_MAX + 8];
        let decoded = match encoding {
            Encoding::Hex | Encoding::HexUpper | Encoding::HexAnyCase => {
                if !is_case(text, encoding) {
                    return None;
                }
                hex::decode_to_slice(text, &mut buffer[..len]).ok()?;
                len
            }
            // The length is checked first: a longer text would not fit the buffer.
            Encoding::Base64 if text.len() == len.div_ceil(3) * 4 => {
                STANDARD.decode_slice(text, &mut buffer).ok()?
            }
            Encoding::Base64Url if text.len() <= len.div_ceil(3) * 4 => {
                URL_SAFE_PAD_INDIFFERENT.decode_slice(text, &mut buffer).ok()?
            }
            Encoding::Base64OfHex if text.len() == (2 * len).div_ceil(3) * 4 => {
                let digits = STANDARD.decode(text).ok()?;
                let is_written = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
                digits.iter().all(is_written).then_some(())?;
                hex::decode_to_slice(digits, &mut buffer[..len]).ok()?;
                len
            }
            Encoding::Base64Percent => {
                return Tag::decode_any(text, encoding).filter(|t| t.as_bytes().len() == len);
            }
            Encoding::Base64 | Encoding::Base64Url | Encoding::Base64OfHex => return None,
        };
        (decoded == len).then(|| Tag::new(&buffer[..len]))
    }

    fn decode_any(text: &str, encoding: Encoding) -> Option<Tag> {
        if text.len() > 2 * LONG_MAX {
            return None;
        }
        let bytes = match encoding {
            Encoding::Hex | Encoding::HexUpper | Encoding::HexAnyCase => {
                hex::decode(text).ok().filter(|_| is_case(text, encoding))?
            }
            Encoding::Base64 => STANDARD.decode(text).ok()?,
            Encoding::Base64Url => URL_SAFE_PAD_INDIFFERENT.decode(text).ok()?,
            Encoding::Base64Percent => {
                let text = PERCENT.iter().fold(text.to_owned(), |text, (sign, written)| {
                    text.replace(written, sign).replace(&written.to_lowercase(), sign)
                });
                STANDARD.decode(text).ok()?
            }
            Encoding::Base64OfHex => return None,
        };
        (!bytes.is_empty() && bytes.len() <= LONG_MAX).then(|| Tag::new(&bytes))
    }

    pub(crate) fn encode(&self, encoding: Encoding) -> String {
        let mac = self.as_bytes();
        match encoding {
            Encoding::Hex | Encoding::HexAnyCase => hex::encode(mac),
            Encoding::HexUpper => hex::encode_upper(mac),
            Encoding::Base64 => STANDARD.encode(mac),
            Encoding::Base64Url => URL_SAFE_NO_PAD.encode(mac),
            Encoding::Base64OfHex => STANDARD.encode(hex::encode(mac)),
            Encoding::Base64Percent => PERCENT
                .iter()
                .fold(STANDARD.encode(mac), |text, (sign, written)| text.replace(sign, written)),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Tag::Short { bytes, len } => &bytes[..*len],
            Tag::Long(bytes) => bytes,
        }
    }

    /// Compares whole MACs in constant time. An empty one equals nothing.
    pub(crate) fn matches(&self, other: &Tag) -> bool {
        match (self, other) {
            (Tag::Short { bytes, len }, Tag::Short { bytes: others, len: other_len }) => {
                len == other_len && *len > 0 && bool::from(bytes.ct_eq(others))
            }
            // No MAC is that long.
            _ => false,
        }
    }
}

fn is_case(text: &str, encoding: Encoding) -> bool {
    match encoding {
        Encoding::Hex => !text.bytes().any(|byte| byte.is_ascii_uppercase()),
        Encoding::HexUpper => !text.bytes().any(|byte| byte.is_ascii_lowercase()),
        _ => true,
    }
}

/// What a signature of `len` bytes should be, for the operator.
pub(crate) fn expectation(encoding: Encoding, len: Option<usize>) -> &'static str {
    match (encoding, len) {
        (Encoding::Hex, Some(20)) => "40 lower-case hex digits",
        (Encoding::Hex, Some(32)) => "64 lower-case hex digits",
        (Encoding::Hex, Some(64)) => "128 lower-case hex digits",
        (Encoding::HexUpper, Some(32)) => "64 upper-case hex digits",
        (Encoding::HexAnyCase, Some(20)) => "40 hex digits",
        (Encoding::HexAnyCase, Some(32)) => "64 hex digits",
        (Encoding::HexAnyCase, Some(64)) => "128 hex digits",
        (Encoding::Base64, Some(20)) => "28 characters of base64",
        (Encoding::Base64, Some(32)) => "44 characters of base64",
        (Encoding::Base64, Some(64)) => "88 characters of base64",
        (Encoding::Base64Url, Some(20)) => "20 bytes in base64 for URLs",
        (Encoding::Base64Url, Some(32)) => "32 bytes in base64 for URLs",
        (Encoding::Base64Url, Some(64)) => "64 bytes in base64 for URLs",
        (Encoding::Base64Percent, _) => "base64, percent-encoded",
        (Encoding::Base64OfHex, _) => "base64 of hex digits",
        (Encoding::Hex | Encoding::HexUpper | Encoding::HexAnyCase, _) => "hex digits",
        (Encoding::Base64, _) => "base64",
        (Encoding::Base64Url, _) => "base64 for URLs",
    }
}
