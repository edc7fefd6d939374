//! Small secrets, sealed so that whoever has the database does not have them.
//!
//! AES-256-GCM under a key derived by HKDF-SHA256 from a master secret of the configuration. A
//! sealed secret belongs to its source: moved to another, it cannot be opened. As bytes it is a
//! version, four bytes that name the key, a random nonce of twelve bytes, the ciphertext and its
//! tag.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::{hmac, rand};
use oncebox_verify::Secret;
use zeroize::{Zeroize as _, Zeroizing};

use crate::limits;
use crate::receipt::SourceNo;

/// How the bytes of a sealed secret are laid out.
const VERSION: u8 = 1;

/// Bytes that name the key a secret was sealed with.
const KEY_NAME_BYTES: usize = 4;

/// Bytes before the ciphertext.
const BEFORE: usize = 1 + KEY_NAME_BYTES + NONCE_LEN;

/// Seals and opens secrets. It cannot be printed.
///
/// ```
/// use oncebox::receipt::SourceNo;
/// use oncebox::sealed::SealingKey;
///
/// let key = SealingKey::derive(b"32 random bytes, from `openssl rand -hex 32`").unwrap();
/// let sealed = key.seal(SourceNo(1), "the provider's secret").unwrap();
/// let secret = key.open(SourceNo(1), &sealed.bytes).unwrap();
/// assert_eq!(secret.fingerprint(), sealed.fingerprint);
/// assert!(key.open(SourceNo(2), &sealed.bytes).is_err());
/// ```
pub struct SealingKey {
    sealing: LessSafeKey,
    marking: hmac::Key,
    name: [u8; KEY_NAME_BYTES],
}

/// A secret as it is kept, and what tells it from others without opening it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The sealed secret.
    pub bytes: Vec<u8>,
    /// Names it in lists; see [`Secret::fingerprint`]. Short, so that two secrets may share one.
    pub fingerprint: String,
    /// Equal for the same secret of the same source under the same key, and for no other. Nobody
    /// without the key can tell anything from it.
    pub mark: [u8; 16],
}

/// Why a secret cannot be sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The master secret could be guessed.
    #[error("the master secret has {found} bytes; it needs {needed} at least, all of them random")]
    ShortMaster {
        /// How many it has.
        found: usize,
        /// How many it should have.
        needed: usize,
    },

    /// There is nothing to seal.
    #[error("the secret is empty")]
    Empty,

    /// It is no secret of a provider.
    #[error("the secret has {found} bytes; at most {most} can be sealed")]
    TooLong {
        /// How many it has.
        found: usize,
        /// How many it may have.
        most: usize,
    },

    /// The system has no random bytes, or the library failed.
    #[error("the secret could not be encrypted")]
    Failed,
}

/// Why a sealed secret cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Too short for a sealed secret.
    #[error("the sealed secret is cut short; it has to be paired again")]
    Truncated,

    /// Sealed by a newer program.
    #[error("the sealed secret is of version {0}, which this program does not know")]
    Version(u8),

    /// Sealed with another key.
    #[error(
        "the secret was sealed under another master secret; is the one configured the right one?"
    )]
    OtherKey,

    /// It was changed, or is that of another source.
    #[error(
        "the sealed secret was changed or belongs to another source; it has to be paired again"
    )]
    Damaged,
}

impl SealingKey {
    /// The key of a master secret, which has to be random and at least
    /// [`MASTER_SECRET_BYTES`](limits::MASTER_SECRET_BYTES) long.
    pub fn derive(master: &[u8]) -> Result<Self, SealError> {
        let needed = limits::MASTER_SECRET_BYTES;
        if master.len() < needed {
            return Err(SealError::ShortMaster { found: master.len(), needed });
        }
        let sealing = Zeroizing::new(expand::<32>(master, b"aes-256-gcm")?);
        let marking = Zeroizing::new(expand::<32>(master, b"mark")?);
        let unbound = UnboundKey::new(&AES_256_GCM, &*sealing).map_err(|_| SealError::Failed)?;
        Ok(Self {
            sealing: LessSafeKey::new(unbound),
            marking: hmac::Key::new(hmac::HMAC_SHA256, &*marking),
            name: expand(master, b"name")?,
        })
    }

    /// Seals a secret of a source.
    pub fn seal(&self, source: SourceNo, secret: &str) -> Result<Sealed, SealError> {
        let most = limits::SEALED_SECRET_BYTES;
        match secret.len() {
            0 => return Err(SealError::Empty),
            found if found > most => return Err(SealError::TooLong { found, most }),
            _ => {}
        }
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| SealError::Failed)?;
        let mut text = Zeroizing::new(secret.as_bytes().to_vec());
        let aad = Aad::from(self.belonging(source));
        let tag = self
            .sealing
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text)
            .map_err(|_| SealError::Failed)?;
        let bytes = [&[VERSION][..], &self.name, &nonce, &text, tag.as_ref()].concat();
        Ok(Sealed {
            bytes,
            fingerprint: Secret::new(secret).fingerprint(),
            mark: self.mark(source, secret),
        })
    }

    /// Opens a secret of a source.
    pub fn open(&self, source: SourceNo, sealed: &[u8]) -> Result<Secret, OpenError> {
        match sealed.first() {
            Some(&VERSION) => {}
            Some(other) => return Err(OpenError::Version(*other)),
            None => return Err(OpenError::Truncated),
        }
        if sealed.len() <= BEFORE + AES_256_GCM.tag_len() {
            return Err(OpenError::Truncated);
        }
        let (before, text) = sealed.split_at(BEFORE);
        let (name, nonce) = before[1..].split_at(KEY_NAME_BYTES);
        if name != self.name {
            return Err(OpenError::OtherKey);
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| OpenError::Truncated)?;
        let mut text = Zeroizing::new(text.to_vec());
        let aad = Aad::from(self.belonging(source));
        let secret = self.sealing.open_in_place(nonce, aad, &mut text);
        let secret = secret.map_err(|_| OpenError::Damaged)?;
        let secret = std::str::from_utf8(secret).map_err(|_| OpenError::Damaged)?;
        Ok(Secret::new(secret))
    }

    /// What is authenticated beside a secret: how it is laid out, the key, and whose it is.
    fn belonging(&self, source: SourceNo) -> Vec<u8> {
        [b"oncebox sealed\0", &[VERSION][..], &self.name, &source.0.to_be_bytes()].concat()
    }

    fn mark(&self, source: SourceNo, secret: &str) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.marking);
        context.update(&source.0.to_be_bytes());
        context.update(secret.as_bytes());
        let mut mark = [0; 16];
        mark.copy_from_slice(&context.sign().as_ref()[..16]);
        mark
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(..redacted..)")
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// Bytes derived from a master secret for one use.
fn expand<const N: usize>(master: &[u8], purpose: &[u8]) -> Result<[u8; N], SealError> {
    struct Length(usize);
    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let derived = Salt::new(HKDF_SHA256, b"oncebox sealed secrets").extract(master);
    let mut bytes = [0; N];
    derived
        .expand(&[b"oncebox/1/", purpose], Length(N))
        .and_then(|output| output.fill(&mut bytes))
        .map_err(|_| {
            bytes.zeroize();
            SealError::Failed
        })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: &[u8] = b"0123456789abcdef0123456789abcdef";
    const OURS: SourceNo = SourceNo(7);

    fn key() -> SealingKey {
        SealingKey::derive(MASTER).unwrap()
    }

    #[test]
    fn what_is_sealed_comes_back() {
        for secret in ["eight by", "a shared secret", &"x".repeat(limits::SEALED_SECRET_BYTES)] {
            let sealed = key().seal(OURS, secret).unwrap();
            assert!(key().open(OURS, &sealed.bytes).unwrap().is_same(&Secret::new(secret)));
            assert_eq!(sealed.fingerprint, Secret::new(secret).fingerprint());
            assert!(!sealed.bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
        }
    }

    #[test]
    fn nothing_is_sealed_alike_twice_and_yet_known_again() {
        let (first, second) =
            (key().seal(OURS, "secret").unwrap(), key().seal(OURS, "secret").unwrap());
        assert_ne!(first.bytes, second.bytes);
        assert_eq!(first.mark, second.mark);
        assert_ne!(first.mark, key().seal(OURS, "Secret").unwrap().mark);
        assert_ne!(first.mark, key().seal(SourceNo(8), "secret").unwrap().mark);
        let other = SealingKey::derive(&[1; 32]).unwrap();
        assert_ne!(first.mark, other.seal(OURS, "secret").unwrap().mark);
    }

    #[test]
    fn another_source_or_key_opens_nothing() {
        let sealed = key().seal(OURS, "secret").unwrap().bytes;
        assert_eq!(key().open(SourceNo(8), &sealed).unwrap_err(), OpenError::Damaged);
        let other = SealingKey::derive(b"0123456789abcdef0123456789abcdeF").unwrap();
        assert_eq!(other.open(OURS, &sealed).unwrap_err(), OpenError::OtherKey);
        // Not even when it claims to be of that key.
        let mut claiming = sealed.clone();
        claiming[1..=KEY_NAME_BYTES].copy_from_slice(&other.name);
        assert_eq!(other.open(OURS, &claiming).unwrap_err(), OpenError::Damaged);
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let sealed = key().seal(OURS, "secret").unwrap().bytes;
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = key().open(OURS, &changed).unwrap_err();
            match bit / 8 {
                0 => assert_eq!(error, OpenError::Version(changed[0])),
                1..=KEY_NAME_BYTES => assert_eq!(error, OpenError::OtherKey),
                _ => assert_eq!(error, OpenError::Damaged),
            }
        }
    }

    #[test]
    fn what_is_cut_short_is_noticed() {
        let sealed = key().seal(OURS, "secret").unwrap().bytes;
        for length in 0..sealed.len() {
            let error = key().open(OURS, &sealed[..length]).unwrap_err();
            let whole = length > BEFORE + AES_256_GCM.tag_len();
            assert_eq!(error, if whole { OpenError::Damaged } else { OpenError::Truncated });
        }
        let longer = [&sealed[..], b"x"].concat();
        assert_eq!(key().open(OURS, &longer).unwrap_err(), OpenError::Damaged);
    }

    #[test]
    fn what_could_be_guessed_is_refused() {
        let short = SealingKey::derive(&MASTER[1..]).unwrap_err();
        assert_eq!(short, SealError::ShortMaster { found: 31, needed: 32 });
        assert_eq!(key().seal(OURS, "").unwrap_err(), SealError::Empty);
        let long = "x".repeat(limits::SEALED_SECRET_BYTES + 1);
        assert!(matches!(key().seal(OURS, &long).unwrap_err(), SealError::TooLong { .. }));
    }

    #[test]
    fn nothing_is_printed() {
        assert_eq!(format!("{:?}", key()), "SealingKey(..redacted..)");
        let sealed = key().seal(OURS, "secret").unwrap();
        let printed = format!("{sealed:?}");
        assert_eq!(printed, format!("Sealed {{ fingerprint: {:?}, .. }}", sealed.fingerprint));
    }
}
