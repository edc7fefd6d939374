//! Key pairs: reading a public key, checking a signature, making one.
//!
//! A key is read for one algorithm, which the entry names. A key of another kind, or of another
//! curve, is no key; nor is one that is too weak.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::PublicEncryptingKey;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA1_ASN1, ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519,
    EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RSA_PSS_2048_8192_SHA512,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaParameters, RsaPssSaltLength,
    RsaPublicKeyComponents, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::{
    STANDARD_PAD_INDIFFERENT, URL_SAFE_NO_PAD, URL_SAFE_PAD_INDIFFERENT,
};
use serde::Deserialize;

use crate::certificate::spki_of;
use crate::ed25519::is_weak;
use crate::pem;
use crate::provider::Algorithm;
use crate::secret::BadSecret;

/// The longest text of a key that is read.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// How few bits an RSA key may have.
const RSA_BITS_MIN: usize = 2048;

/// How many bytes an Ed25519 key has.
const ED25519_BYTES: usize = 32;

/// The longest salt, which some signers use instead of one as long as the hash.
const RSA_PSS_SHA512_LONG_SALT: RsaParameters =
    RSA_PSS_2048_8192_SHA512.with_pss_salt_length(RsaPssSaltLength::Max);

/// A public key for one algorithm, and its private one where we have that.
pub(crate) struct Pair {
    algorithm: Algorithm,
    /// The key once for each form of signature that is accepted.
    public: Vec<ParsedPublicKey>,
    private: Option<Private>,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pair({})", self.algorithm.name())
    }
}

enum Private {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// What an algorithm needs of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ed25519,
    P256,
    Rsa,
}

impl Kind {
    fn of(algorithm: Algorithm) -> Option<Kind> {
        match algorithm {
            Algorithm::Ed25519 => Some(Kind::Ed25519),
            Algorithm::EcdsaP256Sha256 | Algorithm::EcdsaP256Sha1 => Some(Kind::P256),
            Algorithm::RsaSha1
            | Algorithm::RsaSha256
            | Algorithm::RsaSha512
            | Algorithm::RsaPssSha512 => Some(Kind::Rsa),
            Algorithm::HmacSha1
            | Algorithm::HmacSha256
            | Algorithm::HmacSha512
            | Algorithm::Sha1
            | Algorithm::Sha256 => None,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Kind::Ed25519 => "an Ed25519 key",
            Kind::P256 => "an ECDSA key on the curve P-256",
            Kind::Rsa => "an RSA key of at least 2048 bits",
        }
    }
}

impl Pair {
    /// Reads a key as [`KeyForm::Public`](crate::KeyForm::Public) describes it.
    pub(crate) fn decode(
        algorithm: Algorithm,
        number: usize,
        text: &str,
    ) -> Result<Pair, BadSecret> {
        let expected = Kind::of(algorithm).map_or("a key", Kind::expected);
        Pair::read(algorithm, text).ok_or(BadSecret::NotPublicKey { number, expected })
    }

    fn read(algorithm: Algorithm, text: &str) -> Option<Pair> {
        let kind = Kind::of(algorithm)?;
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        if pem::is_pem(text) {
            // A certificate may come with those that lead to a root; the first is the provider's.
            let block = pem::blocks(text)?.into_iter().next()?;
            return match (block.label, kind) {
                ("PUBLIC KEY", _) => Pair::from_spki(algorithm, &block.der),
                ("RSA PUBLIC KEY", Kind::Rsa) => {
                    let key = aws_lc_rs::rsa::PublicKey::from_der(&block.der).ok()?;
                    let spki: PublicKeyX509Der<'_> = key.as_der().ok()?;
                    Pair::from_spki(algorithm, spki.as_ref())
                }
                ("CERTIFICATE", _) => Pair::from_spki(algorithm, &spki_of(&block.der)?),
                ("PRIVATE KEY", _) => Pair::from_pkcs8(algorithm, kind, &block.der),
                _ => None,
            };
        }
        if text.starts_with('{') {
            return Pair::from_jwk(algorithm, kind, text);
        }
        let bytes = bare_bytes(kind, text)?;
        match kind {
            Kind::Ed25519 if bytes.len() == ED25519_BYTES => {
                Pair::from_raw(algorithm, kind, &bytes)
            }
            _ => Pair::from_spki(algorithm, &bytes),
        }
    }

    /// The key of a certificate, once for each algorithm that it fits.
    pub(crate) fn all_from_spki(spki: &[u8]) -> Vec<Arc<Pair>> {
        const ALL: [Algorithm; 7] = [
            Algorithm::Ed25519,
            Algorithm::EcdsaP256Sha256,
            Algorithm::EcdsaP256Sha1,
            Algorithm::RsaSha1,
            Algorithm::RsaSha256,
            Algorithm::RsaSha512,
            Algorithm::RsaPssSha512,
        ];
        let pair = |algorithm| Pair::from_spki(algorithm, spki).map(Arc::new);
        ALL.into_iter().filter_map(pair).collect()
    }

    /// A key in the form of a certificate, which says of which kind it is.
    pub(crate) fn from_spki(algorithm: Algorithm, spki: &[u8]) -> Option<Pair> {
        let kind = Kind::of(algorithm)?;
        // The parsers below would also take bare bytes.
        if spki.first() != Some(&0x30) {
            return None;
        }
        match kind {
            Kind::Ed25519 => {
                // The key is at the end of what wraps it.
                if is_weak(spki.last_chunk::<ED25519_BYTES>()?) {
                    return None;
                }
            }
            Kind::P256 => {}
            Kind::Rsa => {
                let key = PublicEncryptingKey::from_der(spki).ok()?;
                if key.key_size_bits() < RSA_BITS_MIN {
                    return None;
                }
            }
        }
        Pair::from_raw(algorithm, kind, spki)
    }

    fn from_raw(algorithm: Algorithm, kind: Kind, bytes: &[u8]) -> Option<Pair> {
        if kind == Kind::Ed25519 && bytes.len() == ED25519_BYTES && is_weak(bytes) {
            return None;
        }
        let parse =
            |check: &&'static dyn VerificationAlgorithm| ParsedPublicKey::new(*check, bytes);
        let public = checks(algorithm).iter().map(parse).collect::<Result<Vec<_>, _>>().ok()?;
        (!public.is_empty()).then_some(Pair { algorithm, public, private: None })
    }

    fn from_pkcs8(algorithm: Algorithm, kind: Kind, pkcs8: &[u8]) -> Option<Pair> {
        let (private, spki) = match kind {
            Kind::Ed25519 => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).ok()?;
                let spki: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
                (Private::Ed25519(pair), spki)
            }
            Kind::P256 => {
                let signing = &ECDSA_P256_SHA256_ASN1_SIGNING;
                let pair = EcdsaKeyPair::from_pkcs8(signing, pkcs8).ok()?;
                let spki: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
                (Private::Ecdsa(pair), spki)
            }
            Kind::Rsa => {
                let pair = RsaKeyPair::from_pkcs8(pkcs8).ok()?;
                let spki: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
                (Private::Rsa(pair), spki)
            }
        };
        let public = Pair::from_spki(algorithm, spki.as_ref())?;
        Some(Pair { private: Some(private), ..public })
    }

    fn from_jwk(algorithm: Algorithm, kind: Kind, text: &str) -> Option<Pair> {
        let jwk: Jwk = serde_json::from_str(text).ok()?;
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        match (kind, jwk.kty.as_str(), jwk.crv.as_deref()) {
            (Kind::Ed25519, "OKP", Some("Ed25519")) => {
                let key = bytes(jwk.x).filter(|key| key.len() == ED25519_BYTES)?;
                Pair::from_raw(algorithm, kind, &key)
            }
            (Kind::P256, "EC", Some("P-256")) => {
                let (x, y) = (bytes(jwk.x)?, bytes(jwk.y)?);
                let is_whole = x.len() == 32 && y.len() == 32;
                is_whole.then(|| Pair::from_raw(algorithm, kind, &[&[4], &x[..], &y].concat()))?
            }
            (Kind::Rsa, "RSA", None) => {
                let key = RsaPublicKeyComponents { n: bytes(jwk.n)?, e: bytes(jwk.e)? };
                let spki: PublicKeyX509Der<'_> = key.as_der().ok()?;
                Pair::from_spki(algorithm, spki.as_ref())
            }
            _ => None,
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.public.iter().any(|public| public.verify_sig(message, signature).is_ok())
    }

    /// The signature, unless only the public key is known, or the library makes no such
    /// signatures: RSA with SHA-1.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match (self.private.as_ref()?, self.algorithm) {
            (Private::Ed25519(pair), _) => Some(pair.try_sign(message).ok()?.as_ref().to_vec()),
            (Private::Ecdsa(pair), Algorithm::EcdsaP256Sha1) => {
                Some(pair.sign_digest(&long_sha1(message)?).ok()?.as_ref().to_vec())
            }
            (Private::Ecdsa(pair), _) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
            (Private::Rsa(pair), algorithm) => {
                let padding: &'static dyn RsaEncoding = match algorithm {
                    Algorithm::RsaSha256 => &RSA_PKCS1_SHA256,
                    Algorithm::RsaSha512 => &RSA_PKCS1_SHA512,
                    Algorithm::RsaPssSha512 => &RSA_PSS_SHA512,
                    _ => return None,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

/// The SHA-1 as the number that ECDSA signs, in the length of a SHA-256: a hash shorter than the
/// curve is taken as it is, so zeros in front change nothing.
fn long_sha1(message: &[u8]) -> Option<Digest> {
    let short = digest(&SHA1_FOR_LEGACY_USE_ONLY, message);
    let mut long = [0; 32];
    long[12..].copy_from_slice(short.as_ref());
    Digest::import_less_safe(&long, &SHA256).ok()
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

/// The bytes of a key that is neither PEM nor JWK. Hex is only ever a bare Ed25519 key.
fn bare_bytes(kind: Kind, text: &str) -> Option<Vec<u8>> {
    let is_hex = kind == Kind::Ed25519 && text.len() == 2 * ED25519_BYTES;
    if let (true, Ok(bytes)) = (is_hex, hex::decode(text)) {
        return Some(bytes);
    }
    let text: String = text.split_whitespace().collect();
    let standard = STANDARD_PAD_INDIFFERENT.decode(&text);
    standard.or_else(|_| URL_SAFE_PAD_INDIFFERENT.decode(&text)).ok()
}

fn checks(algorithm: Algorithm) -> &'static [&'static dyn VerificationAlgorithm] {
    match algorithm {
        Algorithm::Ed25519 => &[&ED25519],
        Algorithm::EcdsaP256Sha256 => &[&ECDSA_P256_SHA256_ASN1],
        Algorithm::EcdsaP256Sha1 => &[&ECDSA_P256_SHA1_ASN1],
        Algorithm::RsaSha1 => &[&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY],
        Algorithm::RsaSha256 => &[&RSA_PKCS1_2048_8192_SHA256],
        Algorithm::RsaSha512 => &[&RSA_PKCS1_2048_8192_SHA512],
        Algorithm::RsaPssSha512 => &[&RSA_PSS_2048_8192_SHA512, &RSA_PSS_SHA512_LONG_SALT],
        Algorithm::HmacSha1
        | Algorithm::HmacSha256
        | Algorithm::HmacSha512
        | Algorithm::Sha1
        | Algorithm::Sha256 => &[],
    }
}
