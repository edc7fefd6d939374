//! Keyed hashes: computing one, decoding one, comparing two in constant time.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD, URL_SAFE_PAD_INDIFFERENT};
use hmac::{Hmac, KeyInit as _};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use subtle::ConstantTimeEq as _;

use crate::provider::{Algorithm, Encoding};

/// The longest MAC there is: SHA-512.
const MAC_MAX: usize = 64;

/// A secret made ready for one scheme.
pub(crate) enum Key {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Box<Hmac<Sha512>>),
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
            Key::Token(_) | Key::Twilio { .. } => Tag::new(&[]),
        }
    }

    /// Whether `presented` is the token, in constant time.
    pub(crate) fn is_token(&self, presented: &[u8]) -> bool {
        let hash: [u8; 32] = Sha256::digest(presented).into();
        matches!(self, Key::Token(token) if bool::from(token.ct_eq(&hash)))
    }
}

/// A MAC in a fixed buffer, so that decoding one needs no memory.
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    bytes: [u8; MAC_MAX],
    len: usize,
}

impl Tag {
    fn new(mac: &[u8]) -> Tag {
        let mut bytes = [0; MAC_MAX];
        bytes[..mac.len()].copy_from_slice(mac);
        Tag { bytes, len: mac.len() }
    }

    /// Decodes a signature of exactly the algorithm's length; no other text is one.
    pub(crate) fn decode(text: &str, encoding: Encoding, algorithm: Algorithm) -> Option<Tag> {
        let len = mac_len(algorithm);
        // Base64 decoders ask for room up to the next multiple of three.
        let mut buffer = [0; MAC_MAX + 8];
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
        let mac = &self.bytes[..self.len];
        match encoding {
            Encoding::Hex | Encoding::HexAnyCase => hex::encode(mac),
            Encoding::Base64 => STANDARD.encode(mac),
            Encoding::Base64Url => URL_SAFE_NO_PAD.encode(mac),
        }
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

/// What a signature of this form should be, for the operator.
pub(crate) fn expectation(encoding: Encoding, algorithm: Algorithm) -> &'static str {
    match (encoding, algorithm) {
        (Encoding::Hex, Algorithm::Sha1) => "40 lower-case hex digits",
        (Encoding::Hex, Algorithm::Sha256) => "64 lower-case hex digits",
        (Encoding::Hex, Algorithm::Sha512) => "128 lower-case hex digits",
        (Encoding::HexAnyCase, Algorithm::Sha1) => "40 hex digits",
        (Encoding::HexAnyCase, Algorithm::Sha256) => "64 hex digits",
        (Encoding::HexAnyCase, Algorithm::Sha512) => "128 hex digits",
        (Encoding::Base64, Algorithm::Sha1) => "28 characters of base64",
        (Encoding::Base64, Algorithm::Sha256) => "44 characters of base64",
        (Encoding::Base64, Algorithm::Sha512) => "88 characters of base64",
        (Encoding::Base64Url, Algorithm::Sha1) => "20 bytes in base64 for URLs",
        (Encoding::Base64Url, Algorithm::Sha256) => "32 bytes in base64 for URLs",
        (Encoding::Base64Url, Algorithm::Sha512) => "64 bytes in base64 for URLs",
    }
}
