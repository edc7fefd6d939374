//! Signatures: making one, decoding one, comparing two in constant time.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD, URL_SAFE_PAD_INDIFFERENT};
use hmac::{Hmac, KeyInit as _};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use subtle::ConstantTimeEq as _;

use crate::ed25519::{Ed25519Key, SIGNATURE_LEN};
use crate::provider::{Algorithm, Encoding};

/// The longest signatures there are: SHA-512 and Ed25519.
const TAG_MAX: usize = SIGNATURE_LEN;

/// A secret made ready for one scheme. Its kind was decided by the secret and the
/// scheme, before any request came, and decides how signatures are checked.
pub(crate) enum Key {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Box<Hmac<Sha512>>),
    Ed25519(Box<Ed25519Key>),
    /// The hash of a token, so that comparing tells nothing of its length.
    Token([u8; 32]),
    Twilio {
        sha1: Box<Key>,
        sha256: Box<Key>,
    },
}

impl Key {
    pub(crate) fn hmac(algorithm: Algorithm, bytes: &[u8]) -> Key {
        const ANY: &str = "HMAC takes keys of any length";
        match algorithm {
            Algorithm::Sha1 => Key::Sha1(Hmac::new_from_slice(bytes).expect(ANY)),
            Algorithm::Sha256 => Key::Sha256(Hmac::new_from_slice(bytes).expect(ANY)),
            Algorithm::Sha512 => Key::Sha512(Box::new(Hmac::new_from_slice(bytes).expect(ANY))),
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
            Key::Ed25519(_) | Key::Token(_) | Key::Twilio { .. } => Tag::new(&[]),
        }
    }

    /// Whether one of the signatures was made with this key over all chunks.
    pub(crate) fn made_any(&self, given: &[Tag], chunks: &[Cow<'_, [u8]>]) -> bool {
        if let Key::Ed25519(key) = self {
            let message = chunks.concat();
            return given.iter().any(|given| key.verifies(&message, given.as_bytes()));
        }
        let tag = self.mac(chunks.iter().map(AsRef::as_ref));
        given.iter().any(|given| given.matches(&tag))
    }

    /// The signature over all chunks; none if the key can only check one.
    pub(crate) fn sign(&self, chunks: &[Cow<'_, [u8]>]) -> Option<Tag> {
        match self {
            Key::Ed25519(key) => key.sign(&chunks.concat()).map(|signature| Tag::new(&signature)),
            _ => Some(self.mac(chunks.iter().map(AsRef::as_ref))),
        }
    }

    /// Whether `presented` is the token, in constant time.
    pub(crate) fn is_token(&self, presented: &[u8]) -> bool {
        let hash: [u8; 32] = Sha256::digest(presented).into();
        matches!(self, Key::Token(token) if bool::from(token.ct_eq(&hash)))
    }
}

/// A signature in a fixed buffer, so that decoding one needs no memory.
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    bytes: [u8; TAG_MAX],
    len: usize,
}

impl Tag {
    fn new(mac: &[u8]) -> Tag {
        let mut bytes = [0; TAG_MAX];
        bytes[..mac.len()].copy_from_slice(mac);
        Tag { bytes, len: mac.len() }
    }

    /// Decodes a signature of exactly `len` bytes; no other text is one.
    pub(crate) fn decode(text: &str, encoding: Encoding, len: usize) -> Option<Tag> {
        // Base64 decoders ask for room up to the next multiple of three.
        let mut buffer = [0; TAG_MAX + 8];
        let decoded = match encoding {
            Encoding::Hex | Encoding::HexAnyCase => {
                let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
                if encoding == Encoding::Hex && upper {
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
            Encoding::Base64 | Encoding::Base64Url => return None,
        };
        (decoded == len).then(|| Tag::new(&buffer[..len]))
    }

    pub(crate) fn encode(&self, encoding: Encoding) -> String {
        let mac = self.as_bytes();
        match encoding {
            Encoding::Hex | Encoding::HexAnyCase => hex::encode(mac),
            Encoding::Base64 => STANDARD.encode(mac),
            Encoding::Base64Url => URL_SAFE_NO_PAD.encode(mac),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Compares whole MACs in constant time. An empty one equals nothing.
    pub(crate) fn matches(&self, other: &Tag) -> bool {
        self.len == other.len && self.len > 0 && bool::from(self.bytes.ct_eq(&other.bytes))
    }
}

/// How many bytes a MAC has.
pub(crate) fn mac_len(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Sha1 => 20,
        Algorithm::Sha256 => 32,
        Algorithm::Sha512 => 64,
    }
}

/// What a signature of `len` bytes should be, for the operator.
pub(crate) fn expectation(encoding: Encoding, len: usize) -> &'static str {
    match (encoding, len) {
        (Encoding::Hex, 20) => "40 lower-case hex digits",
        (Encoding::Hex, 32) => "64 lower-case hex digits",
        (Encoding::Hex, _) => "128 lower-case hex digits",
        (Encoding::HexAnyCase, 20) => "40 hex digits",
        (Encoding::HexAnyCase, 32) => "64 hex digits",
        (Encoding::HexAnyCase, _) => "128 hex digits",
        (Encoding::Base64, 20) => "28 characters of base64",
        (Encoding::Base64, 32) => "44 characters of base64",
        (Encoding::Base64, _) => "88 characters of base64",
        (Encoding::Base64Url, 20) => "20 bytes in base64 for URLs",
        (Encoding::Base64Url, 32) => "32 bytes in base64 for URLs",
        (Encoding::Base64Url, _) => "64 bytes in base64 for URLs",
    }
}
