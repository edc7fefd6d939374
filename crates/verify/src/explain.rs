//! Why a request verifies or not, step by step.

use jiff::Timestamp;

use crate::found::Found;
use crate::handshake::handshake;
use crate::identify::{Trust, events};
use crate::provider::Provider;
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::{Keyring, Secret};
use crate::verify::{Verified, verify};

mod json_text;
mod mistakes;

/// What [`explain`] found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What was checked, in order.
    pub steps: Vec<Step>,
    /// What to do about it.
    pub advice: Vec<String>,
}

impl Explanation {
    /// Whether every step held.
    pub fn is_ok(&self) -> bool {
        self.steps.iter().all(|step| step.ok)
    }
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is about, such as `signature`.
    pub name: &'static str,
    /// Whether it held.
    pub ok: bool,
    /// What was found, in a sentence.
    pub detail: String,
}

/// Checks a request as [`verify`](crate::verify()) and [`events`](crate::events())
/// do, and tries the usual mistakes where that fails. Nothing in the explanation tells
/// a secret or a signature that would have been right.
///
/// ```
/// use oncebox_verify::{Keyring, SampleEvent, Secret, catalogue, explain, sample, sign};
///
/// let now = "2026-01-02T03:04:05Z".parse()?;
/// let github = catalogue::find("github").unwrap();
/// let secret = Secret::new("It's a Secret to Everybody");
/// let event = SampleEvent { id: "1", event_type: "", at: now, object: None };
/// let mut draft = sign(github, &secret, sample(github, &event), now)?;
/// draft.body.push(b'\n');
///
/// let keyring = Keyring::new(github, vec![secret])?;
/// let explanation = explain(github, &keyring, &draft.request(), now);
/// assert!(!explanation.is_ok());
/// assert!(explanation.advice[0].contains("line break"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explain(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
    received_at: Timestamp,
) -> Explanation {
    if handshake(provider, keyring, request, false).is_some() {
        let detail = "a question of the provider, which is answered without a signature".to_owned();
        let steps = vec![Step { name: "handshake", ok: true, detail }];
        return Explanation { steps, advice: Vec::new() };
    }
    let mut steps = Vec::new();
    match verify(provider, keyring, request, received_at) {
        Ok(verified) => {
            steps.extend(proof_steps(provider, keyring, &verified, received_at));
            steps.extend(event_steps(provider, keyring, request));
            Explanation { steps, advice: Vec::new() }
        }
        Err(rejection) => {
            let failed = stage(&rejection);
            for (name, detail) in
                [(HEADER, "the signature is there"), (DECODE, "the signature can be read")]
            {
                if name != failed && failed != HEADER {
                    steps.push(Step { name, ok: true, detail: detail.to_owned() });
                }
                if name == failed {
                    break;
                }
            }
            if rejection.is_about_time() {
                let detail = "the signature is right".to_owned();
                steps.push(Step { name: SIGNATURE, ok: true, detail });
            }
            steps.push(Step { name: failed, ok: false, detail: rejection.to_string() });
            let trial = mistakes::Trial { provider, keyring, request, received_at };
            let mut advice = mistakes::find(&trial, &rejection);
            if advice.is_empty() {
                advice.push(rejection.hint());
            }
            Explanation { steps, advice }
        }
    }
}

const HEADER: &str = "header";
const DECODE: &str = "decode";
const SIGNATURE: &str = "signature";
const TIMESTAMP: &str = "timestamp";

/// The step at which a request was refused.
fn stage(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::MissingHeader { .. }
        | Rejection::RepeatedHeader { .. }
        | Rejection::MalformedHeader { .. }
        | Rejection::NoSetting { .. }
        | Rejection::NoSecret
        | Rejection::WeakerScheme { .. }
        | Rejection::NotPaired
        | Rejection::PairingClosed
        | Rejection::PairingFull => HEADER,
        Rejection::MalformedSignature { .. }
        | Rejection::BadPrefix { .. }
        | Rejection::NoKnownScheme { .. }
        | Rejection::TooManySignatures { .. }
        | Rejection::TooManyFields { .. }
        | Rejection::UnknownAlgorithm { .. }
        | Rejection::NotCovered { .. }
        | Rejection::UntrustedCertificateUrl
        | Rejection::BadToken { .. }
        | Rejection::UnreadableBody => DECODE,
        Rejection::SignatureMismatch { .. }
        | Rejection::BodyHashMismatch
        | Rejection::MissingBodyHash { .. }
        | Rejection::CertificateNotValid
        | Rejection::KeyNotFetched
        | Rejection::UnknownKey
        | Rejection::BadAudience
        | Rejection::BadIssuer
        | Rejection::BadSubject
        | Rejection::BadClaim { .. }
        | Rejection::MissingClaim { .. }
        | Rejection::UrlHashMismatch
        | Rejection::WrongTopic
        | Rejection::WrongToken { .. } => SIGNATURE,
        Rejection::MissingTimestamp { .. }
        | Rejection::BadTimestamp { .. }
        | Rejection::TimestampTooOld { .. }
        | Rejection::TimestampTooNew { .. }
        | Rejection::TokenExpired { .. }
        | Rejection::TokenNotYetValid { .. } => TIMESTAMP,
    }
}

fn proof_steps(
    provider: &Provider,
    keyring: &Keyring,
    verified: &Verified,
    received_at: Timestamp,
) -> Vec<Step> {
    let step = |name, detail| Step { name, ok: true, detail };
    let matches = match keyring.secrets().get(verified.secret).map(Secret::fingerprint) {
        Some(fingerprint) => format!(
            "{} matches secret {} of {} (fingerprint {fingerprint})",
            verified.scheme,
            verified.secret + 1,
            keyring.len(),
        ),
        None => format!("{} matches a public key that the source is set to", verified.scheme),
    };
    let mut steps = vec![
        step(HEADER, "the signature is there".to_owned()),
        step(DECODE, "the signature can be read".to_owned()),
        step(SIGNATURE, matches),
    ];
    match verified.signed_at {
        Some(signed_at) => {
            let age = received_at.as_second() - signed_at.as_second();
            let when = if age < 0 { "after" } else { "before" };
            let detail = format!("signed at {signed_at}, {} s {when} arrival", age.unsigned_abs());
            steps.push(step(TIMESTAMP, detail));
        }
        None if !provider.signs_timestamp() => {
            let detail = "none is signed; only the identity stops a replay".to_owned();
            steps.push(step(TIMESTAMP, detail));
        }
        None => {}
    }
    steps
}

fn event_steps(provider: &Provider, keyring: &Keyring, request: &Request<'_>) -> Vec<Step> {
    if handshake(provider, keyring, request, true).is_some() {
        let detail = "the provider's handshake, answered from the entry".to_owned();
        return vec![Step { name: "identity", ok: true, detail }];
    }
    match events(provider, request).as_deref() {
        Ok([]) => {
            let detail = "a batch without events, of which nothing is kept".to_owned();
            vec![Step { name: "identity", ok: true, detail }]
        }
        Ok([Found { event, .. }, more @ ..]) => {
            let trust = match event.trust {
                Trust::Signed => "covered by the signature",
                Trust::Transport => "sent beside the signature, not covered by it",
                Trust::Digest => "computed from the body",
                Trust::Unverified => "made up, for nothing was verified",
            };
            let mut identity = format!("`{}`, {trust}", event.id.escape_debug());
            if !more.is_empty() {
                identity.push_str(&format!("; {} more in the batch", more.len()));
            }
            let mut kind = format!("`{}`", event.event_type.escape_debug());
            if let Some(object) = &event.object {
                kind.push_str(&format!(", about `{}`", object.escape_debug()));
            }
            vec![
                Step { name: "identity", ok: true, detail: identity },
                Step { name: "type", ok: true, detail: kind },
            ]
        }
        Err(malformed) => {
            let detail = format!("{malformed}; {}", malformed.hint());
            vec![Step { name: "identity", ok: false, detail }]
        }
    }
}
