//! What a provider is: data that says how to verify, read and answer its webhooks.

use std::borrow::Cow;

use crate::ed25519::SIGNATURE_LEN;
use crate::mac::mac_len;

mod event;

pub use event::{Answer, Field, Guard, Handshake, Identity, Sample, TypeRule, Unit, Version};

/// Text that is a constant in the catalogue and owned in a configured provider.
pub type Text = Cow<'static, str>;

/// A list that is a constant in the catalogue and owned in a configured provider.
pub type List<T> = Cow<'static, [T]>;

/// How one provider signs, names and orders its events.
///
/// ```
/// let stripe = oncebox_verify::catalogue::find("stripe").unwrap();
/// assert_eq!(stripe.title, "Stripe");
/// assert!(stripe.signs_timestamp());
/// ```
#[derive(Clone, Debug)]
pub struct Provider {
    /// The kebab-case name used in configuration.
    pub name: Text,
    /// The name people know it by.
    pub title: Text,
    /// Where the provider documents its signatures.
    pub docs: Text,
    /// Ways to prove a request; the first whose signature is present decides.
    pub schemes: List<Scheme>,
    /// Where the identity is; the first one present is used. None that a scheme leaves
    /// unsigned stands before one that it signs: whoever captured a request could add it.
    pub identity: List<Identity>,
    /// Where the event type is; the first one present is used.
    pub event_type: List<TypeRule>,
    /// Where the id of the business object is; the first one present is used.
    pub object: List<Field>,
    /// Where the ordering value of the object is; the first one present is used.
    pub version: List<Version>,
    /// JSON pointers whose values change between attempts of one event.
    pub volatile: List<Text>,
    /// What must not come in again under another identity that is not signed.
    pub guard: Guard,
    /// The form field that holds the JSON where the provider sends forms.
    pub form_payload: Option<Text>,
    /// A question the provider asks before it sends events.
    pub handshake: Option<Handshake>,
    /// What the provider wants to hear instead of our usual answer.
    pub answer: Option<Answer>,
    /// How the provider retries, in a sentence.
    pub retry: Text,
    /// Where an operator finds the secret, in a sentence.
    pub find_secret: Text,
    /// What else an operator should know; may be empty.
    pub notes: Text,
    /// The type a sample event has unless told otherwise.
    pub sample_type: Text,
    /// The rest of a sample event.
    pub sample: Sample,
}

impl Provider {
    /// Whether every way to prove a request also proves when it was sent.
    pub fn signs_timestamp(&self) -> bool {
        self.schemes.iter().all(Scheme::signs_timestamp)
    }

    /// Whether a captured request could come back under a new identity, so that its
    /// [`guard_digest`](crate::guard_digest()) must be remembered too: some identity is not
    /// signed, and no time is signed together with the body.
    pub fn guards_twins(&self) -> bool {
        let unsigned = |field: &Field| !self.schemes.iter().all(|scheme| scheme.covers(field));
        let exposed = self.identity.iter().any(|identity| match identity {
            Identity::Field(field) => unsigned(field),
            Identity::Joined(fields) => fields.iter().any(unsigned),
            Identity::Digest => false,
        });
        exposed && !self.schemes.iter().all(Scheme::dates_body)
    }

    /// Whether [`content_digest`](crate::content_digest()) is the SHA-256 of the raw body, so
    /// that whoever has that need not compute it again.
    pub fn content_is_body(&self) -> bool {
        self.volatile.is_empty() && !self.schemes.contains(&Scheme::Twilio)
    }

    /// Headers that carry a credential; keep them only as fingerprints.
    pub fn credential_headers(&self) -> impl Iterator<Item = &str> {
        self.schemes.iter().filter_map(|scheme| match scheme {
            Scheme::Token(token) => Some(token.header.as_ref()),
            Scheme::Hmac(_) | Scheme::Ed25519(_) | Scheme::Twilio => None,
        })
    }
}

/// One way to prove that a request comes from the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// A keyed hash over parts of the request.
    Hmac(Hmac),
    /// A signature made with a private key over parts of the request.
    Ed25519(Ed25519),
    /// A credential sent as it is.
    Token(Token),
    /// Twilio's hash over the URL and the sorted form parameters.
    Twilio,
}

impl Scheme {
    /// A short, stable name for logs and receipts.
    pub fn name(&self) -> &'static str {
        match self {
            Scheme::Hmac(hmac) => match hmac.algorithm {
                Algorithm::Sha1 => "hmac-sha1",
                Algorithm::Sha256 => "hmac-sha256",
                Algorithm::Sha512 => "hmac-sha512",
            },
            Scheme::Ed25519(_) => "ed25519",
            Scheme::Token(token) => match token.kind {
                TokenKind::Plain => "token",
                TokenKind::Bearer => "bearer",
                TokenKind::Basic => "basic",
            },
            Scheme::Twilio => "twilio",
        }
    }

    /// Whether the signature covers a timestamp.
    pub fn signs_timestamp(&self) -> bool {
        self.layout().is_some_and(|layout| match layout.timestamp {
            Some(Stamp { place: Place::Json(pointer), .. }) => {
                layout.covers(&Field::Json(pointer.clone()))
            }
            Some(_) => layout.signed.contains(&Part::Timestamp),
            None => false,
        })
    }

    /// Whether the signature covers a timestamp and the whole body, so that the body cannot
    /// come back later.
    fn dates_body(&self) -> bool {
        let covers_body = |layout: Layout<'_>| layout.signed.contains(&Part::Body);
        self.signs_timestamp() && self.layout().is_some_and(covers_body)
    }

    /// Whether the signature covers what `field` reads.
    ///
    /// Twilio's covers the characters of a form and not where a name or value ends:
    /// `MessageStatus=sent` verifies as `MessageStatus=se&nt=` too. So it covers no field of
    /// a form.
    pub fn covers(&self, field: &Field) -> bool {
        match self {
            Scheme::Hmac(hmac) => hmac.layout().covers(field),
            Scheme::Ed25519(ed25519) => ed25519.layout().covers(field),
            Scheme::Token(_) => false,
            Scheme::Twilio => matches!(field, Field::Json(_)),
        }
    }

    /// How the request carries a signature of this scheme; none if it carries no
    /// signature, or one that only its own code understands.
    ///
    /// ```
    /// let svix = oncebox_verify::catalogue::find("svix").unwrap();
    /// let prefixes = svix.schemes.iter().filter_map(|scheme| Some(scheme.layout()?.prefix));
    /// assert!(prefixes.eq(["v1,", "v1a,", "v1,", "v1a,"]));
    /// ```
    pub fn layout(&self) -> Option<Layout<'_>> {
        match self {
            Scheme::Hmac(hmac) => Some(hmac.layout()),
            Scheme::Ed25519(ed25519) => Some(ed25519.layout()),
            Scheme::Token(_) | Scheme::Twilio => None,
        }
    }
}

/// A keyed hash over parts of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hmac {
    /// The hash function. Requests never choose it.
    pub algorithm: Algorithm,
    /// Where the signature is.
    pub signature: Place,
    /// Text in front of every signature, such as `sha256=`.
    pub prefix: Text,
    /// What stands between several signatures in one header.
    pub separator: Option<char>,
    /// How the signature is written.
    pub encoding: Encoding,
    /// Where the signed time is, if there is one.
    pub timestamp: Option<Stamp>,
    /// What is hashed, in order.
    pub signed: List<Part>,
    /// How the secret becomes a key.
    pub key: KeyEncoding,
}

impl Hmac {
    pub(crate) fn layout(&self) -> Layout<'_> {
        Layout {
            signature: &self.signature,
            prefix: &self.prefix,
            separator: self.separator,
            encoding: self.encoding,
            signature_len: mac_len(self.algorithm),
            timestamp: self.timestamp.as_ref(),
            signed: &self.signed,
        }
    }
}

/// A signature made with a private key over parts of the request.
///
/// The secret is base64 after `whpk_`, which is the public key and can only verify,
/// or after `whsk_`, which is the private key and can sign too. No other secret is
/// a key of this scheme, and those two are keys of no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ed25519 {
    /// Where the signature is.
    pub signature: Place,
    /// Text in front of every signature, such as `v1a,`.
    pub prefix: Text,
    /// What stands between several signatures in one header.
    pub separator: Option<char>,
    /// How the signature is written.
    pub encoding: Encoding,
    /// Where the signed time is, if there is one.
    pub timestamp: Option<Stamp>,
    /// What is signed, in order.
    pub signed: List<Part>,
}

impl Ed25519 {
    pub(crate) fn layout(&self) -> Layout<'_> {
        Layout {
            signature: &self.signature,
            prefix: &self.prefix,
            separator: self.separator,
            encoding: self.encoding,
            signature_len: SIGNATURE_LEN,
            timestamp: self.timestamp.as_ref(),
            signed: &self.signed,
        }
    }
}

/// What [`Hmac`] and [`Ed25519`] have in common: all but the algorithm and its key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Layout<'p> {
    /// Where the signature is.
    pub signature: &'p Place,
    /// Text in front of every signature.
    pub prefix: &'p Text,
    /// What stands between several signatures in one header.
    pub separator: Option<char>,
    /// How the signature is written.
    pub encoding: Encoding,
    /// How many bytes a signature has.
    pub signature_len: usize,
    /// Where the signed time is, if there is one.
    pub timestamp: Option<&'p Stamp>,
    /// What is signed, in order.
    pub signed: &'p [Part],
}

impl Layout<'_> {
    fn covers(&self, field: &Field) -> bool {
        self.signed.iter().any(|part| match (part, field) {
            (Part::Body, Field::Json(_) | Field::Form(_)) => true,
            (Part::Header(signed), Field::Header(name)) => signed.eq_ignore_ascii_case(name),
            (Part::Json(signed), Field::Json(pointer)) => signed == pointer,
            _ => false,
        })
    }
}

/// A credential sent as it is. It proves who sent a request, not what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The header that carries it.
    pub header: Text,
    /// How the header writes it.
    pub kind: TokenKind,
    /// Whether a `whsec_` secret, which is a signing key, is refused as a token.
    pub refuse_whsec: bool,
}

/// How a header writes a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// The value is the token.
    Plain,
    /// `Bearer`, then the token.
    Bearer,
    /// `Basic`, then the base64 of `user:password`.
    Basic,
}

/// A hash function for [`Hmac`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-1; safe inside an HMAC, and some providers use nothing else.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// How a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Lower-case hex digits.
    Hex,
    /// Hex digits of either case.
    HexAnyCase,
    /// Padded base64.
    Base64,
    /// Base64 for URLs, padded or not.
    Base64Url,
}

/// How a secret becomes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEncoding {
    /// The bytes of the text.
    Text,
    /// Base64.
    Base64,
    /// Hex digits.
    Hex,
    /// Base64 after an optional `whsec_` or `v1,whsec_`.
    Whsec,
    /// Base64 after `whsec_`; any other secret belongs to another scheme.
    WhsecOnly,
    /// Base64 after `whsec_`, else the bytes of the text.
    WhsecOrText,
}

/// Where a signature or a timestamp is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A header of its own.
    Header(Text),
    /// A labelled value in a header such as `t=1,v1=ab`.
    Label {
        /// The header.
        header: Text,
        /// The label in front of `=`.
        label: Text,
        /// What stands between two labelled values.
        separator: char,
    },
    /// A JSON pointer into the body.
    Json(Text),
}

/// A signed time and how far it may be from ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Where it is.
    pub place: Place,
    /// How it is written.
    pub format: TimeFormat,
    /// How many seconds it may be off, in both directions, inclusive.
    pub tolerance_secs: u32,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// Unix seconds.
    Seconds,
    /// Unix milliseconds.
    Milliseconds,
    /// RFC 3339, such as `2026-01-02T03:04:05Z`.
    Iso8601,
    /// The form of the `Date` header.
    HttpDate,
}

/// One part of what is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The timestamp exactly as sent.
    Timestamp,
    /// The raw body.
    Body,
    /// The URL as the provider saw it.
    Url,
    /// The method, in upper case.
    Method,
    /// The value of a header.
    Header(Text),
    /// The text of a JSON value in the body.
    Json(Text),
    /// Constant text.
    Text(Text),
}
