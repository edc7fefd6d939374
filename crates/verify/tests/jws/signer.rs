//! What signs tokens, the tokens it signs, and the public halves of its keys.

use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::bed::{BODY, SHARED};

pub(crate) static RSA: LazyLock<RsaKeyPair> =
    LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
pub(crate) static P256: LazyLock<EcdsaKeyPair> =
    LazyLock::new(|| EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap());
pub(crate) static P384: LazyLock<EcdsaKeyPair> =
    LazyLock::new(|| EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap());

/// What signs a token.
#[derive(Clone)]
pub(crate) enum Signer {
    Hs256(Vec<u8>),
    Rs256,
    Rs512,
    Es256,
    Es384,
}

impl Signer {
    pub(crate) fn shared() -> Signer {
        Signer::Hs256(SHARED.as_bytes().to_vec())
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let rng = SystemRandom::new();
        let rsa = |padding| {
            let mut signature = vec![0; RSA.public_modulus_len()];
            RSA.sign(padding, &rng, message, &mut signature).unwrap();
            signature
        };
        match self {
            Signer::Hs256(key) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
            }
            Signer::Rs256 => rsa(&RSA_PKCS1_SHA256),
            Signer::Rs512 => rsa(&RSA_PKCS1_SHA512),
            Signer::Es256 => P256.sign(&rng, message).unwrap().as_ref().to_vec(),
            Signer::Es384 => P384.sign(&rng, message).unwrap().as_ref().to_vec(),
        }
    }
}

pub(crate) fn token(alg: &str, signer: &Signer) -> String {
    raw(&json!({ "alg": alg }).to_string(), &claims(), signer)
}

/// A token with exactly these two texts.
pub(crate) fn raw(header: &str, payload: &str, signer: &Signer) -> String {
    let message = format!("{}.{}", encode(header), encode(payload));
    let signature = encode(signer.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

pub(crate) fn claims() -> String {
    let hash = STANDARD.encode(Sha256::digest(BODY));
    json!({ "request_body_sha256": hash }).to_string()
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn rsa_pem() -> String {
    pem(&rsa_der())
}

pub(crate) fn rsa_der() -> Vec<u8> {
    spki(&RSA.public_key().as_der().unwrap())
}

pub(crate) fn p256_jwk(kid: &str) -> Value {
    let point = P256.public_key().as_ref();
    let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
    json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": kid, "use": "sig" })
}

pub(crate) fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

pub(crate) fn spki(der: &PublicKeyX509Der<'_>) -> Vec<u8> {
    der.as_ref().to_vec()
}
