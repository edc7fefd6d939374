//! Keys of JSON Web Signatures: shared secrets, PEM, and JSON Web Keys (RFC 7517).
//!
//! What a key can check is decided here, when it is read: its kind and the list of the entry
//! give the algorithms. A token only names one of them, and a key that has not got it is no key
//! for the token. So the text of a public key never becomes the key of an HMAC.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED, ECDSA_P521_SHA512_FIXED_SIGNING,
    ED25519, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_2048_8192_SHA512, RSA_PSS_SHA512,
    RsaEncoding, RsaKeyPair, RsaParameters, RsaPublicKeyComponents, VerificationAlgorithm,
};
use aws_lc_rs::{hmac, rsa};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_PAD_INDIFFERENT, URL_SAFE_PAD_INDIFFERENT};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::{Zeroize as _, Zeroizing};

use crate::certificate;
use crate::ed25519::is_weak;
use crate::pem::{self, Block, is_pem};
use crate::provider::JwsAlgorithm;

/// How many keys one text may hold.
const KEYS_MAX: usize = 32;

/// The shortest RSA key that is taken.
const RSA_BITS_MIN: u32 = 2048;

/// What makes one algorithm.
enum Made {
    Mac(hmac::Algorithm),
    Rsa(&'static RsaParameters),
    /// The algorithm, the name of the curve, and how many bytes a coordinate has.
    Curve(&'static dyn VerificationAlgorithm, &'static EcdsaSigningAlgorithm, &'static str, usize),
    Ed25519,
}

fn made(algorithm: JwsAlgorithm) -> Made {
    match algorithm {
        JwsAlgorithm::Hs256 => Made::Mac(hmac::HMAC_SHA256),
        JwsAlgorithm::Hs384 => Made::Mac(hmac::HMAC_SHA384),
        JwsAlgorithm::Hs512 => Made::Mac(hmac::HMAC_SHA512),
        JwsAlgorithm::Rs256 => Made::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        JwsAlgorithm::Rs384 => Made::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        JwsAlgorithm::Rs512 => Made::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        JwsAlgorithm::Ps512 => Made::Rsa(&RSA_PSS_2048_8192_SHA512),
        JwsAlgorithm::Es256 => {
            Made::Curve(&ECDSA_P256_SHA256_FIXED, &ECDSA_P256_SHA256_FIXED_SIGNING, "P-256", 32)
        }
        JwsAlgorithm::Es384 => {
            Made::Curve(&ECDSA_P384_SHA384_FIXED, &ECDSA_P384_SHA384_FIXED_SIGNING, "P-384", 48)
        }
        JwsAlgorithm::Es512 => {
            Made::Curve(&ECDSA_P521_SHA512_FIXED, &ECDSA_P521_SHA512_FIXED_SIGNING, "P-521", 66)
        }
        JwsAlgorithm::EdDsa => Made::Ed25519,
    }
}

/// One key, and all that it can check.
pub(crate) struct JwsKey {
    kid: Option<String>,
    /// When it stops to be good. Plaid's keys say so.
    expires_at: Option<i64>,
    checks: Vec<(JwsAlgorithm, Check)>,
    signer: Option<Signer>,
}

impl fmt::Debug for JwsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms: Vec<_> = self.checks.iter().map(|(algorithm, _)| algorithm).collect();
        f.debug_struct("JwsKey").field("kid", &self.kid).field("checks", &algorithms).finish()
    }
}

enum Check {
    Mac(Box<hmac::Key>),
    Public(ParsedPublicKey),
}

enum Signer {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl JwsKey {
    fn new(checks: Vec<(JwsAlgorithm, Check)>, signer: Option<Signer>) -> Option<JwsKey> {
        (!checks.is_empty()).then_some(JwsKey { kid: None, expires_at: None, checks, signer })
    }

    /// A shared secret. None where the entry has no algorithm for one.
    pub(crate) fn shared(algorithms: &[JwsAlgorithm], bytes: &[u8]) -> Option<JwsKey> {
        // HMAC takes an empty key, and then anyone can sign.
        if bytes.is_empty() {
            return None;
        }
        let check = |algorithm: &JwsAlgorithm| match made(*algorithm) {
            Made::Mac(mac) => Some((*algorithm, Check::Mac(Box::new(hmac::Key::new(mac, bytes))))),
            _ => None,
        };
        JwsKey::new(algorithms.iter().filter_map(check).collect(), None)
    }

    /// A public key in DER.
    fn public(algorithms: &[JwsAlgorithm], der: &[u8]) -> Option<JwsKey> {
        JwsKey::new(public_checks(algorithms, der), None)
    }

    /// A private key in DER, which checks with its public half.
    fn private(algorithms: &[JwsAlgorithm], der: &[u8]) -> Option<JwsKey> {
        let signer = algorithms.iter().find_map(|algorithm| match made(*algorithm) {
            Made::Mac(_) => None,
            Made::Rsa(_) => {
                let pair = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
                pair.ok().map(Signer::Rsa)
            }
            Made::Curve(_, signing, ..) => {
                let pair = EcdsaKeyPair::from_pkcs8(signing, der);
                let pair = pair.or_else(|_| EcdsaKeyPair::from_private_key_der(signing, der));
                pair.ok().map(Signer::Ecdsa)
            }
            Made::Ed25519 => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(Signer::Ed25519)
            }
        })?;
        let checks = public_checks(algorithms, signer.public());
        JwsKey::new(checks, Some(signer))
    }

    /// Whether it may be the key that a token names. A key without a name may be any.
    pub(crate) fn is_named(&self, kid: Option<&str>) -> bool {
        self.kid.is_none() || kid.is_none() || self.kid.as_deref() == kid
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now.as_second() >= end)
    }

    pub(crate) fn has(&self, algorithm: JwsAlgorithm) -> bool {
        self.checks.iter().any(|(known, _)| *known == algorithm)
    }

    /// Whether this key made the signature with this algorithm. Never for one it has not got.
    pub(crate) fn verifies(
        &self,
        algorithm: JwsAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let check = self.checks.iter().find(|(known, _)| *known == algorithm);
        check.is_some_and(|(_, check)| match check {
            Check::Mac(key) => hmac::verify(key, message, signature).is_ok(),
            Check::Public(key) => key.verify_sig(message, signature).is_ok(),
        })
    }

    /// What this key signs with.
    pub(crate) fn algorithm(&self) -> Option<JwsAlgorithm> {
        self.checks.first().map(|(algorithm, _)| *algorithm)
    }

    /// Whether it is a secret that both sides have.
    pub(crate) fn is_shared(&self) -> bool {
        self.algorithm().is_some_and(JwsAlgorithm::is_hmac)
    }

    pub(crate) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// The signature; none if only the public half is known.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let (algorithm, check) = self.checks.first()?;
        let made = match (&self.signer, check) {
            (None, Check::Mac(key)) => return Some(hmac::sign(key, message).as_ref().to_vec()),
            (None, Check::Public(_)) => return None,
            (Some(Signer::Ecdsa(pair)), _) => pair.sign(&SystemRandom::new(), message).ok()?,
            (Some(Signer::Ed25519(pair)), _) => pair.try_sign(message).ok()?,
            (Some(Signer::Rsa(pair)), _) => {
                let padding: &'static dyn RsaEncoding = match algorithm {
                    JwsAlgorithm::Ps512 => &RSA_PSS_SHA512,
                    JwsAlgorithm::Rs512 => &RSA_PKCS1_SHA512,
                    JwsAlgorithm::Rs384 => &RSA_PKCS1_SHA384,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &SystemRandom::new(), message, &mut signature).ok()?;
                return Some(signature);
            }
        };
        Some(made.as_ref().to_vec())
    }
}

impl Signer {
    /// The public half: PKCS#1 for RSA, a point otherwise.
    fn public(&self) -> &[u8] {
        match self {
            Signer::Rsa(pair) => pair.public_key().as_ref(),
            Signer::Ecdsa(pair) => pair.public_key().as_ref(),
            Signer::Ed25519(pair) => pair.public_key().as_ref(),
        }
    }
}

/// Every algorithm of the entry that a public key fits.
fn public_checks(algorithms: &[JwsAlgorithm], der: &[u8]) -> Vec<(JwsAlgorithm, Check)> {
    let check = |algorithm: &JwsAlgorithm| {
        let key = match made(*algorithm) {
            Made::Mac(_) => return None,
            // A key that is too short would be taken and then fit no signature.
            Made::Rsa(_) if rsa_bits(der) < RSA_BITS_MIN => return None,
            Made::Rsa(params) => ParsedPublicKey::new(params, der),
            Made::Curve(verification, ..) => ParsedPublicKey::new(verification, der),
            // The key is at the end of what wraps it.
            Made::Ed25519 if der.last_chunk::<32>().is_none_or(|key| is_weak(key)) => return None,
            Made::Ed25519 => ParsedPublicKey::new(&ED25519, der),
        };
        Some((*algorithm, Check::Public(key.ok()?)))
    };
    algorithms.iter().filter_map(check).collect()
}

/// How long an RSA key is; nothing for what is none.
fn rsa_bits(der: &[u8]) -> u32 {
    let Ok(key) = rsa::PublicKey::from_der(der) else { return 0 };
    RsaParameters::public_modulus_len(key.as_ref()).unwrap_or_default()
}

/// What the text of a key turned out to be.
pub(crate) enum Text {
    /// Keys that fit the entry, at least one.
    Keys(Vec<JwsKey>),
    /// A key of a pair, but none that fits the entry.
    Unfit,
    /// No key of a pair at all; it may be a shared secret.
    Plain,
}

/// Reads PEM, the base64 of DER, one JWK, an array of them or a key set. A shared secret is read
/// only from a JWK, and only where `shared` allows one.
pub(crate) fn read(algorithms: &[JwsAlgorithm], text: &str, shared: bool) -> Text {
    let keys: Vec<JwsKey> = if is_pem(text) {
        let blocks = pem::blocks(text).unwrap_or_default();
        blocks.iter().filter_map(|block| read_block(algorithms, block)).collect()
    } else if text.starts_with(['{', '[']) {
        let keys = match jwks(text) {
            Some(keys) => keys,
            // A key inside something else is still no shared secret.
            None if text.contains("\"kty\"") => return Text::Unfit,
            None => return Text::Plain,
        };
        let keys = keys.into_iter().filter_map(|key| read_jwk(algorithms, key.get(), shared));
        keys.collect()
    } else if let Some(der) = bare_der(text) {
        JwsKey::public(algorithms, &der).into_iter().collect()
    } else {
        return Text::Plain;
    };
    if keys.is_empty() { Text::Unfit } else { Text::Keys(keys) }
}

fn read_block(algorithms: &[JwsAlgorithm], block: &Block<'_>) -> Option<JwsKey> {
    match block.label {
        "PUBLIC KEY" | "RSA PUBLIC KEY" => JwsKey::public(algorithms, &block.der),
        "PRIVATE KEY" | "EC PRIVATE KEY" | "RSA PRIVATE KEY" => {
            JwsKey::private(algorithms, &block.der)
        }
        // The operator pinned the certificate, so only its key matters.
        "CERTIFICATE" => JwsKey::public(algorithms, &certificate::spki_of(&block.der)?),
        _ => None,
    }
}

/// The bytes of a public key in DER that lost the lines around it.
fn bare_der(text: &str) -> Option<Vec<u8>> {
    let body: Zeroizing<String> = Zeroizing::new(text.split_whitespace().collect());
    let der = STANDARD_PAD_INDIFFERENT.decode(body.as_bytes()).ok()?;
    // A shared secret in base64 may begin like that too; it is no key of any kind, though.
    const ANY: &[JwsAlgorithm] = &[
        JwsAlgorithm::Rs256,
        JwsAlgorithm::Es256,
        JwsAlgorithm::Es384,
        JwsAlgorithm::Es512,
        JwsAlgorithm::EdDsa,
    ];
    let is_sequence = der.len() > 40 && der.first() == Some(&0x30);
    let is_key = || !public_checks(ANY, &der).is_empty() || rsa::PublicKey::from_der(&der).is_ok();
    (is_sequence && is_key()).then_some(der)
}

/// The keys of a set, of an array, or the one there is; none where it is nothing of that.
fn jwks(text: &str) -> Option<Vec<&RawValue>> {
    #[derive(Deserialize)]
    struct Set<'a> {
        #[serde(borrow)]
        keys: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "kty")]
        _kty: String,
    }
    let keys = if let Ok(Set { keys }) = serde_json::from_str(text) {
        keys
    } else if let Ok(keys) = serde_json::from_str::<Vec<&RawValue>>(text) {
        keys
    } else if serde_json::from_str::<Kind>(text).is_ok() {
        vec![serde_json::from_str(text).ok()?]
    } else {
        return None;
    };
    (keys.len() <= KEYS_MAX).then_some(keys)
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    expired_at: Option<i64>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    k: Option<String>,
    d: Option<String>,
}

impl Drop for Jwk {
    fn drop(&mut self) {
        self.k.zeroize();
        self.d.zeroize();
    }
}

/// Reads one JWK that anybody can fetch, for every algorithm of key pairs. None where it fits none.
pub(crate) fn read_served(text: &str) -> Option<JwsKey> {
    const PAIRS: &[JwsAlgorithm] = &[
        JwsAlgorithm::Rs256,
        JwsAlgorithm::Rs384,
        JwsAlgorithm::Rs512,
        JwsAlgorithm::Es256,
        JwsAlgorithm::Es384,
        JwsAlgorithm::Es512,
        JwsAlgorithm::EdDsa,
    ];
    read_jwk(PAIRS, text, false)
}

/// Reads one JWK. None for a kind, a use or an algorithm that is not the entry's: a set may hold
/// other keys beside the ones we need.
fn read_jwk(algorithms: &[JwsAlgorithm], text: &str, shared: bool) -> Option<JwsKey> {
    let jwk: Jwk = serde_json::from_str(text).ok()?;
    let is_ours = jwk.usage.as_deref().is_none_or(|usage| usage == "sig")
        && jwk.key_ops.as_ref().is_none_or(|all| {
            all.iter().any(|operation| matches!(operation.as_str(), "verify" | "sign"))
        });
    let fits = |algorithm: &&JwsAlgorithm| {
        (shared || !algorithm.is_hmac())
            && jwk.alg.as_deref().is_none_or(|name| name == algorithm.name())
    };
    let algorithms: Vec<JwsAlgorithm> = algorithms.iter().filter(fits).copied().collect();
    let key = match jwk.kty.as_str() {
        _ if !is_ours => None,
        "oct" => JwsKey::shared(&algorithms, &bytes(&jwk.k)?),
        "RSA" => rsa_key(&algorithms, &jwk),
        "EC" => curve_key(&algorithms, &jwk),
        "OKP" => ed25519_key(&algorithms, &jwk),
        _ => None,
    }?;
    Some(JwsKey { kid: jwk.kid.clone(), expires_at: jwk.expired_at, ..key })
}

fn bytes(field: &Option<String>) -> Option<Zeroizing<Vec<u8>>> {
    let bytes = URL_SAFE_PAD_INDIFFERENT.decode(field.as_deref()?).ok()?;
    Some(Zeroizing::new(bytes))
}

/// Only the public half is read: nobody signs samples with an RSA key that is a JWK.
fn rsa_key(algorithms: &[JwsAlgorithm], jwk: &Jwk) -> Option<JwsKey> {
    let (n, e) = (bytes(&jwk.n)?, bytes(&jwk.e)?);
    let n = &n[n.iter().position(|byte| *byte != 0)?..];
    if n.len() * 8 < RSA_BITS_MIN as usize {
        return None;
    }
    let check = |algorithm: &JwsAlgorithm| match made(*algorithm) {
        Made::Rsa(params) => {
            let key = RsaPublicKeyComponents { n, e: e.as_slice() }.to_parsed_public_key(params);
            Some((*algorithm, Check::Public(key.ok()?)))
        }
        _ => None,
    };
    JwsKey::new(algorithms.iter().filter_map(check).collect(), None)
}

fn curve_key(algorithms: &[JwsAlgorithm], jwk: &Jwk) -> Option<JwsKey> {
    let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    let found = algorithms.iter().find_map(|algorithm| match made(*algorithm) {
        Made::Curve(verification, signing, curve, len) => {
            let fits = jwk.crv.as_deref() == Some(curve) && x.len() == len && y.len() == len;
            fits.then_some((*algorithm, verification, signing))
        }
        _ => None,
    });
    let (algorithm, verification, signing) = found?;
    let public = ParsedPublicKey::new(verification, &point).ok()?;
    let pair = bytes(&jwk.d)
        .map(|private| EcdsaKeyPair::from_private_key_and_public_key(signing, &private, &point));
    let signer = pair.transpose().ok()?.map(Signer::Ecdsa);
    JwsKey::new(vec![(algorithm, Check::Public(public))], signer)
}

fn ed25519_key(algorithms: &[JwsAlgorithm], jwk: &Jwk) -> Option<JwsKey> {
    let public = bytes(&jwk.x)?;
    let fits = jwk.crv.as_deref() == Some("Ed25519") && public.len() == 32 && !is_weak(&public);
    let is_listed = algorithms.contains(&JwsAlgorithm::EdDsa);
    if !fits || !is_listed {
        return None;
    }
    let key = ParsedPublicKey::new(&ED25519, public.as_slice()).ok()?;
    let pair = bytes(&jwk.d).map(|seed| Ed25519KeyPair::from_seed_and_public_key(&seed, &public));
    let signer = pair.transpose().ok()?.map(Signer::Ed25519);
    JwsKey::new(vec![(JwsAlgorithm::EdDsa, Check::Public(key))], signer)
}
