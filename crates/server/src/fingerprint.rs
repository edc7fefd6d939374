//! What stands for a credential that is not kept.

use std::fmt;

use aws_lc_rs::{hmac, rand};
use http::HeaderValue;
use oncebox::store::{Store, StoreError};

/// What every fingerprint begins with.
pub const PREFIX: &str = "fingerprint:";

/// How many bytes a fingerprint tells.
const BYTES: usize = 4;

/// Makes fingerprints of credentials, under a key that the store keeps: the same credential has the
/// same one in all receipts of a store, and who sees it without the key cannot try guesses on it.
pub struct Fingerprints(hmac::Key);

impl Fingerprints {
    /// Those of a store. The first server on it makes the key.
    pub async fn of(store: &dyn Store) -> Result<Self, StoreError> {
        let mut fresh = [0; 32];
        rand::fill(&mut fresh)
            .map_err(|_| StoreError::Unavailable("the system has no randomness".to_owned()))?;
        let key = store.fingerprint_key(fresh).await?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// The fingerprint of a credential.
    pub fn print(&self, credential: &[u8]) -> HeaderValue {
        let tag = hmac::sign(&self.0, credential);
        let print = format!("{PREFIX}{}", hex::encode(&tag.as_ref()[..BYTES]));
        HeaderValue::try_from(print).expect("hex is a header value")
    }
}

impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprints(..)")
    }
}

/// Whether the value of a header is a fingerprint.
pub fn is_fingerprint(value: &[u8]) -> bool {
    let digits = value.strip_prefix(PREFIX.as_bytes()).unwrap_or_default();
    digits.len() == 2 * BYTES && digits.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_of_one_key() {
        let of = |key: u8| Fingerprints(hmac::Key::new(hmac::HMAC_SHA256, &[key; 32]));
        let print = of(1).print(b"Bearer canary");
        assert!(is_fingerprint(print.as_bytes()), "{print:?}");
        assert_eq!(of(1).print(b"Bearer canary"), print);
        assert_ne!(of(1).print(b"Bearer other"), print);
        assert_ne!(of(2).print(b"Bearer canary"), print, "another store");
        for other in ["fingerprint:", "fingerprint:0123456", "sha256:01234567", "0123abcd"] {
            assert!(!is_fingerprint(other.as_bytes()), "{other}");
        }
    }
}
