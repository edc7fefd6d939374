//! What the head of a request decides before its body is read.

use crate::provider::{Handshake, Place, Provider, Scheme, Signature, Token, TokenPlace};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::Keyring;
use crate::verify::{
    accepted, can_check, check_named, credential, header, is_present, missing, one, signatures,
    stamp_text,
};

/// What the request line and the headers of a request say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// The body may prove it: all of it must be read.
    Promising,
    /// No body proves it. It may still be a question that its provider does not sign, or tell a
    /// secret: both have at most [`QUESTION_BYTES_MAX`](crate::QUESTION_BYTES_MAX).
    Question(Rejection),
    /// No body proves it, and nothing else comes by its method. It is refused as it is.
    Hopeless(Rejection),
}

/// Judges a request by its head; the body of `request` is not looked at.
///
/// A request is hopeless only where every proof of the entry is in headers or the query, none of
/// them is there in a form that could be right, and no unsigned question or pairing of the entry
/// comes by the method. Then [`verify`](crate::verify()) refuses it whatever its body is. Whether
/// the keyring has a key for the proof does not count: a source may be about to learn one.
///
/// ```
/// use oncebox_verify::{Head, Keyring, Request, Secret, catalogue, head};
///
/// let github = catalogue::find("github").unwrap();
/// let keyring = Keyring::new(github, vec![Secret::new("It's a Secret to Everybody")])?;
/// let mut headers = http::HeaderMap::new();
/// let judge = |headers: &http::HeaderMap| {
///     head(github, &keyring, &Request { method: "POST", url: "/in/github", headers, body: b"" })
/// };
/// assert!(matches!(judge(&headers), Head::Hopeless(_)));
/// headers.insert("x-hub-signature-256", "sha256=nonsense".parse()?);
/// assert!(matches!(judge(&headers), Head::Hopeless(_)));
/// let signature = format!("sha256={}", "00".repeat(32));
/// headers.insert("x-hub-signature-256", signature.parse()?);
/// assert_eq!(judge(&headers), Head::Promising);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn head(provider: &Provider, keyring: &Keyring, request: &Request<'_>) -> Head {
    match hopeless(provider, keyring, request) {
        None => Head::Promising,
        Some(rejection) if may_ask(provider, request.method) => Head::Question(rejection),
        Some(rejection) => Head::Hopeless(rejection),
    }
}

/// Why no body proves the request; none if one may.
fn hopeless(provider: &Provider, keyring: &Keyring, request: &Request<'_>) -> Option<Rejection> {
    if !may_be_signed(provider, request.method) {
        return Some(missing(provider, keyring, request));
    }
    if accepted(provider, keyring).any(|(_, scheme)| is_in_body(scheme)) {
        return None;
    }
    if let Err(rejection) = check_named(provider, keyring, request) {
        return Some(rejection);
    }
    let mut refused: Option<Rejection> = None;
    for (number, scheme) in accepted(provider, keyring) {
        if !is_present(scheme, request) {
            continue;
        }
        let rejection = check(scheme, request).err()?;
        // As when it is verified: the first that can be checked decides, and a signature that is
        // wrong tells more than one that is not there.
        let is_told = matches!(refused, None | Some(Rejection::NoKnownScheme { .. }));
        if is_told && can_check(keyring, number, scheme) {
            refused = Some(rejection);
        }
    }
    Some(refused.unwrap_or_else(|| missing(provider, keyring, request)))
}

/// Whether a signed event or a signed question comes by this method.
fn may_be_signed(provider: &Provider, method: &str) -> bool {
    let is_signed = |asked: &Handshake| asked.signed && comes_by(asked, method);
    method == "POST" || provider.handshakes.iter().any(is_signed)
}

/// Whether an unsigned question comes by this method, or a secret that the provider tells.
fn may_ask(provider: &Provider, method: &str) -> bool {
    let is_open = |asked: &Handshake| !asked.signed && comes_by(asked, method);
    provider.handshakes.iter().any(is_open) || (provider.pairing.is_some() && method == "POST")
}

fn comes_by(asked: &Handshake, method: &str) -> bool {
    asked.methods.iter().any(|known| known == method)
}

/// Whether the proof of a scheme is in the body.
fn is_in_body(scheme: &Scheme) -> bool {
    match scheme {
        Scheme::Signature(signature) => match &signature.place {
            Place::Form(_) | Place::Json(_) | Place::Item(_) => true,
            Place::Header(_)
            | Place::Repeated(_)
            | Place::AnyOf(_)
            | Place::Numbered(_)
            | Place::Label { .. }
            | Place::First { .. }
            | Place::Rest { .. }
            | Place::Query(_) => false,
        },
        Scheme::Token(token) => match &token.place {
            TokenPlace::Json(_) | TokenPlace::Item(_) => true,
            TokenPlace::Header(_) | TokenPlace::Query(_) => false,
        },
        // Without a header the body is the token, or has the signature in it.
        Scheme::Jws(_) | Scheme::Special(_) => scheme.header().is_none(),
    }
}

/// Checks the form of a proof that is in the head, as verifying it does first.
fn check(scheme: &Scheme, request: &Request<'_>) -> Result<(), Rejection> {
    match scheme {
        Scheme::Signature(signature) => {
            signatures(signature, request)?;
            if stamps_head(signature) {
                stamp_text(signature, request)?;
            }
            Ok(())
        }
        Scheme::Token(Token { place: TokenPlace::Query(name), .. }) => {
            one(request.query(name), name).map(drop)
        }
        Scheme::Token(Token { place: TokenPlace::Header(name), kind, .. }) => {
            credential(*kind, header(request.headers, name)?).map(drop)
        }
        Scheme::Special(special) => special.check_head(request),
        Scheme::Token(_) | Scheme::Jws(_) => match scheme.header() {
            Some(name) => header(request.headers, name).map(drop),
            None => Ok(()),
        },
    }
}

/// Whether the time of a signature is in the head.
fn stamps_head(signature: &Signature) -> bool {
    let place = signature.timestamp.as_ref().map(|stamp| &stamp.place);
    matches!(place, Some(Place::Header(_) | Place::Label { .. } | Place::First { .. }))
}
