//! Ed25519 keys: reading one, checking a signature, making one.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, ParsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use zeroize::Zeroizing;

use crate::secret::BadSecret;

/// How many bytes a signature has.
pub(crate) const SIGNATURE_LEN: usize = 64;

/// How many bytes a public key has, and the seed of a private one.
const KEY_LEN: usize = 32;

const PUBLIC: &str = "whpk_";
const PRIVATE: &str = "whsk_";

/// A public key, and its private one where we have that.
pub(crate) struct Ed25519Key {
    public: ParsedPublicKey,
    private: Option<Ed25519KeyPair>,
}

/// What stands after the `v1a,` that some write in front of a key.
fn bare(text: &str) -> &str {
    text.strip_prefix("v1a,").unwrap_or(text)
}

/// Whether the text of a secret says that it is half of a key pair. Such a text is
/// never a shared secret: who knows a public key must not be able to sign with it.
pub(crate) fn is_key(text: &str) -> bool {
    bare(text).starts_with(PUBLIC) || bare(text).starts_with(PRIVATE)
}

impl Ed25519Key {
    /// Reads base64 after `whpk_` or `whsk_`. A private key is its seed, or the seed
    /// and the public key.
    pub(crate) fn decode(number: usize, text: &str) -> Result<Ed25519Key, BadSecret> {
        let bad = || BadSecret::NotKey { number };
        let text = bare(text);
        let (private, encoded) = match text.strip_prefix(PRIVATE) {
            Some(encoded) => (true, encoded),
            None => (false, text.strip_prefix(PUBLIC).ok_or_else(bad)?),
        };
        let bytes = STANDARD_PAD_INDIFFERENT.decode(encoded).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| BadSecret::NotBase64 { number })?;
        let pair = match (private, bytes.split_at_checked(KEY_LEN)) {
            (false, _) => None,
            (true, Some((seed, []))) => Some(Ed25519KeyPair::from_seed_unchecked(seed)),
            (true, Some((seed, key))) => Some(Ed25519KeyPair::from_seed_and_public_key(seed, key)),
            (true, None) => return Err(bad()),
        };
        let pair = pair.transpose().map_err(|_| bad())?;
        let public = pair.as_ref().map_or(bytes.as_slice(), |pair| pair.public_key().as_ref());
        // The parser would also take a certificate's way to write a key.
        if public.len() != KEY_LEN || is_weak(public) {
            return Err(bad());
        }
        let public = ParsedPublicKey::new(&ED25519, public).map_err(|_| bad())?;
        Ok(Ed25519Key { public, private: pair })
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        signature.len() == SIGNATURE_LEN && self.public.verify_sig(message, signature).is_ok()
    }

    /// The signature, unless only the public key is known.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        Some(self.private.as_ref()?.try_sign(message).ok()?.as_ref().to_vec())
    }
}

/// Whether a public key is a point of small order. Anyone can sign for such a key,
/// for instance for the one that is all zeros, which a placeholder may well be.
pub(crate) fn is_weak(key: &[u8]) -> bool {
    // The two points of order eight; the sign, in the last bit, makes four of them.
    const ORDER_8: [&str; 2] = [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ];
    let mut key = key.to_vec();
    if let Some(last) = key.last_mut() {
        *last &= 0x7f;
    }
    match key.as_slice() {
        // 0 and 1, or the same plus the prime, and the prime less 1.
        [0x00 | 0x01, middle @ .., 0x00] if middle.iter().all(|byte| *byte == 0x00) => true,
        [0xec..=0xee, middle @ .., 0x7f] if middle.iter().all(|byte| *byte == 0xff) => true,
        key => ORDER_8.contains(&hex::encode(key).as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(prefix: &str, bytes: &[u8]) -> Result<Ed25519Key, BadSecret> {
        Ed25519Key::decode(0, &format!("{prefix}{}", STANDARD_PAD_INDIFFERENT.encode(bytes)))
    }

    #[test]
    fn a_private_key_may_bring_its_public_one() {
        let seed = [7; 32];
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let both = [&seed, pair.public_key().as_ref()].concat();
        let signature = decode("whsk_", &both).unwrap().sign(b"m").unwrap();
        assert_eq!(decode("v1a,whsk_", &seed).unwrap().sign(b"m").unwrap(), signature);
        let public = decode("whpk_", pair.public_key().as_ref()).unwrap();
        assert!(public.verifies(b"m", &signature) && !public.verifies(b"n", &signature));
        assert!(public.sign(b"m").is_none());
        // Halves of two pairs would sign and never verify.
        assert!(decode("whsk_", &[[7; 32], [8; 32]].concat()).is_err());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for len in [0, 1, 31, 33, 44, 63, 65] {
            assert!(decode("whpk_", &vec![9; len]).is_err(), "{len}");
            assert!(decode("whsk_", &vec![9; len]).is_err(), "{len}");
        }
        assert!(decode("whpk_", &[9; 64]).is_err());
        assert!(Ed25519Key::decode(0, "whpk_!").is_err());
    }

    #[test]
    fn keys_that_anyone_can_sign_for_are_refused() {
        let fill = |first: u8, middle: u8, last: u8| {
            let mut key = [middle; 32];
            (key[0], key[31]) = (first, last);
            key
        };
        for sign in [0, 0x80] {
            for first in [0, 1] {
                assert!(decode("whpk_", &fill(first, 0, sign)).is_err());
            }
            for first in [0xec, 0xed, 0xee] {
                assert!(decode("whpk_", &fill(first, 0xff, 0x7f | sign)).is_err());
            }
            let mut key =
                hex::decode("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
                    .unwrap();
            key[31] |= sign;
            assert!(decode("whpk_", &key).is_err());
        }
        assert!(decode("whpk_", &fill(9, 0, 0)).is_ok());

        // Why: this one signature is right for every message, and the library agrees.
        let neutral = fill(1, 0, 0);
        let forged = [neutral, [0; 32]].concat();
        let public = ParsedPublicKey::new(&ED25519, neutral).unwrap();
        assert!(public.verify_sig(b"any message", &forged).is_ok());
    }
}
