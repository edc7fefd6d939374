//! Key pairs: reading a public key, checking a signature, making one.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA512,
    VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;

use crate::provider::Algorithm;
use crate::secret::BadSecret;

/// A public key for one algorithm, and its private one where we have that.
pub(crate) struct Pair {
    public: ParsedPublicKey,
}

impl Pair {
    /// Reads a key as [`KeyForm::Public`](crate::KeyForm::Public) describes it.
    pub(crate) fn decode(
        algorithm: Algorithm,
        number: usize,
        text: &str,
    ) -> Result<Pair, BadSecret> {
        let bad = || BadSecret::NotKey { number };
        let bytes = match text.strip_prefix("-----BEGIN PUBLIC KEY-----") {
            Some(rest) => {
                let body = rest.split("-----END").next().unwrap_or_default();
                let body: String = body.split_whitespace().collect();
                STANDARD_PAD_INDIFFERENT.decode(body).map_err(|_| bad())?
            }
            None => match hex::decode(text) {
                Ok(bytes) => bytes,
                Err(_) => STANDARD_PAD_INDIFFERENT.decode(text).map_err(|_| bad())?,
            },
        };
        let verification = verification(algorithm).ok_or_else(bad)?;
        let public = ParsedPublicKey::new(verification, bytes).map_err(|_| bad())?;
        Ok(Pair { public })
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.public.verify_sig(message, signature).is_ok()
    }

    /// The signature, unless only the public key is known.
    pub(crate) fn sign(&self, _message: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

fn verification(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match algorithm {
        Algorithm::Ed25519 => &ED25519,
        Algorithm::EcdsaP256Sha256 => &ECDSA_P256_SHA256_ASN1,
        Algorithm::RsaSha1 => &RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        Algorithm::RsaSha256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RsaSha512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::RsaPssSha512 => &RSA_PSS_2048_8192_SHA512,
        Algorithm::EcdsaP256Sha1
        | Algorithm::HmacSha1
        | Algorithm::HmacSha256
        | Algorithm::HmacSha512
        | Algorithm::Sha1
        | Algorithm::Sha256 => return None,
    })
}
