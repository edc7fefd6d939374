//! One way to prove that a request comes from its provider.

use super::{Claim, Field, Jws, JwsKeys, JwsPayload, KeyForm, Part, Place, Signature};
use super::{Token, TokenKind, TokenPlace};
use crate::jws;
use crate::secret::Keyring;
use crate::special::Special;

/// One way to prove that a request comes from the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "constants cannot be boxed, and nobody moves them")]
pub enum Scheme {
    /// A signature over parts of the request.
    Signature(Signature),
    /// A credential sent as it is.
    Token(Token),
    /// A JSON Web Signature.
    Jws(Jws),
    /// A scheme that needs code of its own.
    Special(Special),
}

impl Scheme {
    /// A short, stable name for logs and receipts.
    pub fn name(&self) -> &'static str {
        match self {
            Scheme::Signature(signature) => signature.algorithm.name(),
            Scheme::Token(token) => match token.kind {
                TokenKind::Plain => "token",
                TokenKind::Bearer => "bearer",
                TokenKind::Basic => "basic",
            },
            Scheme::Jws(_) => "jws",
            Scheme::Special(special) => special.name(),
        }
    }

    /// How the request carries a signature of this scheme; none if it carries no
    /// signature, or one that only its own code understands.
    ///
    /// ```
    /// let svix = oncebox_verify::catalogue::find("svix").unwrap();
    /// let prefixes = svix.schemes.iter().filter_map(|scheme| Some(&scheme.signature()?.prefix));
    /// assert!(prefixes.eq(["v1,", "v1a,", "v1,", "v1a,"]));
    /// ```
    pub fn signature(&self) -> Option<&Signature> {
        match self {
            Scheme::Signature(signature) => Some(signature),
            Scheme::Token(_) | Scheme::Jws(_) | Scheme::Special(_) => None,
        }
    }

    /// The header in which the proof is; none if it is elsewhere, or in one of several.
    pub fn header(&self) -> Option<&str> {
        match self {
            Scheme::Signature(signature) => match &signature.place {
                Place::Header(header)
                | Place::Repeated(header)
                | Place::Label { header, .. }
                | Place::First { header, .. }
                | Place::Rest { header, .. } => Some(header),
                Place::AnyOf(headers) => headers.first().map(AsRef::as_ref),
                Place::Numbered(_)
                | Place::Query(_)
                | Place::Form(_)
                | Place::Json(_)
                | Place::Item(_) => None,
            },
            Scheme::Token(token) => match &token.place {
                TokenPlace::Header(header) => Some(header),
                TokenPlace::Query(_) | TokenPlace::Json(_) | TokenPlace::Item(_) => None,
            },
            Scheme::Jws(jws) => jws.header.as_deref(),
            Scheme::Special(special) => special.header(),
        }
    }

    /// Whether the proof covers a timestamp that is checked.
    pub fn signs_timestamp(&self) -> bool {
        match self {
            Scheme::Signature(signature) => signature.signs_timestamp(),
            Scheme::Token(_) => false,
            Scheme::Jws(jws) => jws.is_dated(),
            Scheme::Special(special) => special.signs_timestamp(),
        }
    }

    /// Whether the proof covers the URL.
    pub fn signs_url(&self) -> bool {
        let in_parts = |parts: &[Part]| {
            parts.iter().any(|part| matches!(part, Part::Url | Part::PathAndQuery))
        };
        match self {
            Scheme::Signature(signature) => in_parts(&signature.signed),
            Scheme::Token(_) => false,
            Scheme::Jws(jws) => match &jws.payload {
                JwsPayload::Claims(claims) => claims.iter().any(|claim| {
                    matches!(claim, Claim::IsUrl(_) | Claim::UrlHash(..) | Claim::QueryHash)
                }),
                JwsPayload::Detached(parts) => in_parts(parts),
                JwsPayload::TrueLayer => true,
            },
            Scheme::Special(special) => special.signs_url(),
        }
    }

    /// Whether the key is fetched from the provider unless the configuration has it.
    pub fn fetches_keys(&self) -> bool {
        match self {
            Scheme::Signature(signature) => matches!(signature.key, KeyForm::Certificate(_)),
            Scheme::Token(_) => false,
            Scheme::Jws(jws) => !matches!(jws.keys, JwsKeys::Secret),
            Scheme::Special(special) => special.fetches_keys(),
        }
    }

    /// Whether the source says all that the claims of a token are compared with.
    pub(crate) fn is_set_up(&self, keyring: &Keyring) -> bool {
        match self {
            Scheme::Jws(jws) => jws::check_settings(jws, keyring).is_ok(),
            Scheme::Signature(_) | Scheme::Token(_) | Scheme::Special(_) => true,
        }
    }

    /// Whether the proof covers the whole body, byte for byte.
    pub fn covers_body(&self) -> bool {
        match self {
            Scheme::Signature(signature) => signature.covers_body(),
            Scheme::Token(_) => false,
            Scheme::Jws(jws) => jws.covers_body(),
            Scheme::Special(special) => special.covers_body(),
        }
    }

    /// Whether it is a credential that says nothing of the request.
    pub(crate) fn covers_nothing(&self) -> bool {
        match self {
            Scheme::Token(_) => true,
            Scheme::Jws(jws) => !jws.covers_body(),
            Scheme::Signature(_) | Scheme::Special(_) => false,
        }
    }

    /// Whether what is called the secret is a part of what is signed.
    pub(crate) fn signs_secret(&self) -> bool {
        self.signature().is_some_and(|signature| signature.signed.contains(&Part::Secret))
    }

    /// Whether it is checked with a public key, which a source may say as a setting.
    pub(crate) fn takes_public_key(&self) -> bool {
        match self {
            Scheme::Signature(signature) => signature.algorithm.is_asymmetric(),
            Scheme::Token(_) => false,
            Scheme::Jws(jws) => jws.algorithms.iter().any(|algorithm| !algorithm.is_hmac()),
            Scheme::Special(special) => special.takes_public_key(),
        }
    }

    /// Whether the signature covers a timestamp and the whole body, so that the body cannot
    /// come back later.
    pub(super) fn dates_body(&self) -> bool {
        self.covers_body() && self.signs_timestamp()
    }

    /// Whether the signature covers what `field` reads.
    pub fn covers(&self, field: &Field) -> bool {
        match self {
            Scheme::Signature(signature) => signature.covers(field),
            Scheme::Token(_) => false,
            Scheme::Jws(jws) => jws.covers(field),
            Scheme::Special(special) => special.covers(field),
        }
    }

    /// Whether bodies that differ in their bytes have one signature, so that content must be
    /// compared in the words of the scheme.
    pub(super) fn respells_body(&self) -> bool {
        matches!(self, Scheme::Special(special) if special.respells_body())
    }

    /// Whether the proof, or a part of what it covers, is read from a form.
    pub(super) fn reads_forms(&self) -> bool {
        match self {
            Scheme::Signature(signature) => signature.reads_forms(),
            Scheme::Token(_) | Scheme::Jws(_) => false,
            Scheme::Special(special) => special.reads_forms(),
        }
    }

    /// Whether a header is the proof, or a part of what it proves.
    pub(super) fn reads_header(&self, name: &str) -> bool {
        let is_it = |header: &str| header.eq_ignore_ascii_case(name);
        let signs_it = |parts: &[Part]| {
            parts.iter().any(|part| matches!(part, Part::Header(header) if is_it(header)))
        };
        let rest = match self {
            Scheme::Signature(signature) => {
                let stamp = signature.timestamp.as_ref().map(|stamp| &stamp.place);
                let mut places = std::iter::once(&signature.place).chain(stamp);
                places.any(|place| place.is_header(name)) || signs_it(&signature.signed)
            }
            Scheme::Jws(Jws { payload: JwsPayload::Detached(parts), .. }) => signs_it(parts),
            Scheme::Special(special) => special.reads_header(name),
            Scheme::Token(_) | Scheme::Jws(_) => false,
        };
        rest || self.header().is_some_and(is_it)
    }

    /// The header that carries a credential, if the scheme has one.
    pub(super) fn credential_header(&self) -> Option<&str> {
        match self {
            Scheme::Token(Token { place: TokenPlace::Header(header), .. }) => Some(header),
            // A token that does not name what it vouches for can be used again.
            Scheme::Jws(jws) if !jws.covers_body() => jws.header.as_deref(),
            _ => None,
        }
    }
}

impl Jws {
    fn covers_body(&self) -> bool {
        match &self.payload {
            _ if self.header.is_none() => true,
            JwsPayload::Claims(claims) => {
                claims.iter().any(|claim| matches!(claim, Claim::BodyHash(..)))
            }
            JwsPayload::Detached(parts) => parts.contains(&Part::Body),
            JwsPayload::TrueLayer => true,
        }
    }

    fn covers(&self, field: &Field) -> bool {
        field.is_in_body() && self.covers_body()
    }

    /// Whether a token that was captured stops to work by itself.
    fn is_dated(&self) -> bool {
        match &self.payload {
            JwsPayload::Claims(claims) => {
                claims.iter().any(|claim| matches!(claim, Claim::Expires | Claim::IssuedWithin(_)))
            }
            JwsPayload::Detached(_) | JwsPayload::TrueLayer => false,
        }
    }
}
