//! Key pairs for trying things out: who plays the provider signs with the private key, and the
//! source has the public one.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaKeyPair,
};
use zeroize::Zeroizing;

use crate::pem;
use crate::provider::{Algorithm, Jws, JwsAlgorithm, KeyForm, Provider, Scheme};
use crate::secret::Secret;
use crate::special::Special;

/// A key pair such as a provider has.
#[derive(Debug)]
pub struct KeyPair {
    /// The private key in PEM; [`sign`](crate::sign()) takes it as a secret.
    pub private: Secret,
    /// The public key in PEM; a source takes it as a secret, or as its setting `public_key`.
    pub public: String,
}

impl KeyPair {
    /// The text of the private key, to be kept in a file that only its owner can read.
    pub fn private_pem(&self) -> &str {
        self.private.expose()
    }
}

enum Kind {
    Ed25519,
    Ecdsa(&'static EcdsaSigningAlgorithm),
    Rsa,
}

/// A fresh key pair of the kind that the provider signs with. None where it signs with a shared
/// secret, or in a way that nobody should any more: RSA with SHA-1.
///
/// ```
/// use oncebox_verify::{Keyring, SampleEvent, Secret, catalogue};
/// use oncebox_verify::{generate_pair, sample, sign, verify};
///
/// let now = "2026-01-02T03:04:05Z".parse()?;
/// let discord = catalogue::find("discord").unwrap();
/// let pair = generate_pair(discord).unwrap();
/// let event = SampleEvent { id: "1", event_type: "", at: now, object: None };
/// let draft = sign(discord, &pair.private, sample(discord, &event), now)?;
///
/// let keyring = Keyring::new(discord, vec![Secret::new(pair.public)])?;
/// assert!(verify(discord, &keyring, &draft.request(), now).is_ok());
/// assert!(generate_pair(catalogue::find("stripe").unwrap()).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate_pair(provider: &Provider) -> Option<KeyPair> {
    let (private, public) = match kind(provider.schemes.first()?)? {
        Kind::Ed25519 => {
            let pair = Ed25519KeyPair::generate().ok()?;
            let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
            let private = Zeroizing::new(pair.to_pkcs8v1().ok()?.as_ref().to_vec());
            (private, public)
        }
        Kind::Ecdsa(algorithm) => {
            let pair = EcdsaKeyPair::generate(algorithm).ok()?;
            let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
            let private = Zeroizing::new(pair.to_pkcs8v1().ok()?.as_ref().to_vec());
            (private, public)
        }
        Kind::Rsa => {
            let pair = RsaKeyPair::generate(KeySize::Rsa2048).ok()?;
            let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
            let private: Pkcs8V1Der<'_> = pair.as_der().ok()?;
            (Zeroizing::new(private.as_ref().to_vec()), public)
        }
    };
    Some(KeyPair {
        private: Secret::new(pem::print("PRIVATE KEY", &private)),
        public: pem::print("PUBLIC KEY", public.as_ref()),
    })
}

/// Whether there are key pairs for a scheme.
pub(crate) fn has_pair(scheme: &Scheme) -> bool {
    kind(scheme).is_some()
}

fn kind(scheme: &Scheme) -> Option<Kind> {
    let p256 = Kind::Ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    match scheme {
        // `whsk_` and `whpk_` are not written as PEM.
        Scheme::Signature(signature) if signature.key == KeyForm::Whpk => None,
        Scheme::Signature(signature) => match signature.algorithm {
            Algorithm::Ed25519 => Some(Kind::Ed25519),
            Algorithm::EcdsaP256Sha256 | Algorithm::EcdsaP256Sha1 => Some(p256),
            Algorithm::RsaSha256 | Algorithm::RsaSha512 | Algorithm::RsaPssSha512 => {
                Some(Kind::Rsa)
            }
            Algorithm::RsaSha1
            | Algorithm::HmacSha1
            | Algorithm::HmacSha256
            | Algorithm::HmacSha512
            | Algorithm::Sha1
            | Algorithm::Sha256 => None,
        },
        Scheme::Token(_) => None,
        Scheme::Jws(jws) => jws_kind(jws),
        Scheme::Special(Special::Sns) => Some(Kind::Rsa),
        Scheme::Special(Special::HttpMessage) => Some(Kind::Ed25519),
        Scheme::Special(Special::Ebay) => Some(p256),
        Scheme::Special(_) => None,
    }
}

fn jws_kind(jws: &Jws) -> Option<Kind> {
    match jws.algorithms.first()? {
        JwsAlgorithm::Hs256 | JwsAlgorithm::Hs384 | JwsAlgorithm::Hs512 => None,
        JwsAlgorithm::Rs256 | JwsAlgorithm::Rs384 | JwsAlgorithm::Rs512 | JwsAlgorithm::Ps512 => {
            Some(Kind::Rsa)
        }
        JwsAlgorithm::Es256 => Some(Kind::Ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING)),
        JwsAlgorithm::Es384 => Some(Kind::Ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING)),
        JwsAlgorithm::Es512 => Some(Kind::Ecdsa(&ECDSA_P521_SHA512_ASN1_SIGNING)),
        JwsAlgorithm::EdDsa => Some(Kind::Ed25519),
    }
}
