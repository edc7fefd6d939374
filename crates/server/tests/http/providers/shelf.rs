//! Keys on a shelf: what a provider would serve, and how often it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::Uri;
use oncebox_server::keys::{KeyFailure, KeyOptions, KeySource, Served};
use oncebox_verify::Draft;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

/// Serves what it was told to, and notes every URL.
pub(crate) struct Shelf {
    serves: Mutex<VecDeque<Result<Served, KeyFailure>>>,
    asked: Mutex<Vec<String>>,
    /// Answers are given as far as there are permits.
    gate: Semaphore,
}

impl Default for Shelf {
    fn default() -> Self {
        let gate = Semaphore::new(Semaphore::MAX_PERMITS);
        Self { serves: Mutex::default(), asked: Mutex::default(), gate }
    }
}

impl Shelf {
    /// One that answers nobody before it is opened.
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self { gate: Semaphore::new(0), ..Self::default() })
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1000);
    }

    /// Serves this next; the last one again and again.
    pub(crate) fn serve(&self, body: impl Into<Bytes>) {
        let served = Served { body: body.into(), max_age: None };
        self.serves.lock().unwrap().push_back(Ok(served));
    }

    pub(crate) fn fail(&self) {
        let failure = KeyFailure::new("connect", "nobody is there");
        self.serves.lock().unwrap().push_back(Err(failure));
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn options(self: &Arc<Self>) -> KeyOptions {
        KeyOptions { source: Some(self.clone()), roots: None }
    }
}

#[async_trait]
impl KeySource for Shelf {
    async fn fetch(&self, url: &Uri, _: bool) -> Result<Served, KeyFailure> {
        self.asked.lock().unwrap().push(url.to_string());
        let _turn = self.gate.acquire().await.unwrap();
        let mut serves = self.serves.lock().unwrap();
        match serves.len() {
            0 => Ok(Served { body: Bytes::new(), max_age: Some(Duration::ZERO) }),
            1 => serves[0].clone(),
            _ => serves.pop_front().unwrap(),
        }
    }
}

/// A key pair that signs as FusionAuth does.
pub(crate) struct Signer {
    kid: String,
    pair: Ed25519KeyPair,
}

impl Signer {
    /// The same name has the same key.
    pub(crate) fn new(kid: &str) -> Self {
        let seed = Sha256::digest(kid);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        Self { kid: kid.to_owned(), pair }
    }

    fn jwk(&self) -> serde_json::Value {
        let x = URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref());
        json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": self.kid, "x": x})
    }

    /// A request whose token vouches for its body.
    pub(crate) fn signed(&self, id: &str) -> Draft {
        let event = json!({"event": {"id": id, "type": "user.create", "user": {"id": "u1"}}});
        let body = event.to_string().into_bytes();
        let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": self.kid});
        let claims = json!({"request_body_sha256": STANDARD.encode(Sha256::digest(&body))});
        let encode = |part: serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
        let mut headers = http::HeaderMap::new();
        let token = format!("{signed}.{signature}").parse().unwrap();
        headers.insert("x-fusionauth-signature-jwt", token);
        headers.insert("content-type", "application/json".parse().unwrap());
        Draft { method: "POST".into(), url: "/in/auth".into(), headers, body }
    }
}

/// The key set with these.
pub(crate) fn key_set(signers: &[&Signer]) -> String {
    json!({"keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>()}).to_string()
}

/// A source whose keys are fetched, and one whose key is in the configuration.
pub(crate) fn sources(pinned: &Signer) -> String {
    format!(
        "[sources.auth]\nprovider = \"fusionauth\"\n\
         jwks_url = \"https://keys.example.com/.well-known/jwks.json\"\n\
         [sources.pinned]\nprovider = \"fusionauth\"\njwk = '{}'\n",
        pinned.jwk()
    )
}
