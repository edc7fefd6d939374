//! Signatures over parts of a request: what is signed, how it is written, and where.

use super::{Field, List, Text};

/// A keyed hash, a digest that includes the secret, or a signature made with a private key, over
/// parts of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What makes the signature. Requests never choose it.
    pub algorithm: Algorithm,
    /// Where the signature is.
    pub place: Place,
    /// Text in front of every signature, such as `sha256=`.
    pub prefix: Text,
    /// What stands between several signatures in one header.
    pub separator: Option<char>,
    /// How the signature is written.
    pub encoding: Encoding,
    /// Where the signed time is, if there is one.
    pub timestamp: Option<Stamp>,
    /// What is signed, in order.
    pub signed: List<Part>,
    /// How the secret becomes a key, or where the key comes from.
    pub key: KeyForm,
}

impl Signature {
    /// Whether the signature covers what `field` reads.
    pub(super) fn covers(&self, field: &Field) -> bool {
        let inside = |signed: &str, pointer: &str| {
            pointer.strip_prefix(signed).is_some_and(|rest| rest.starts_with('/'))
        };
        // Texts beside each other can be cut elsewhere and still be signed as they are, whatever
        // stands between them: it may also stand inside them.
        let exact = self.signed.iter().filter(|part| part.is_loose()).count() <= 1;
        self.signed.iter().filter(|part| exact || !part.is_loose()).any(|part| {
            match (part, field) {
                (Part::Body | Part::BodyHash { .. }, field) => field.is_in_body(),
                (Part::Header(signed), Field::Header(name)) => signed.eq_ignore_ascii_case(name),
                (Part::Json(signed) | Part::JsonAs(signed, _), Field::Json(pointer)) => {
                    signed == pointer
                }
                (Part::JsonRaw(signed), Field::Json(pointer)) => {
                    signed == pointer || inside(signed, pointer)
                }
                (Part::JsonRaw(signed), Field::Within(outer, _)) => signed == outer,
                (Part::Item(signed), Field::Item(pointer)) => signed == pointer,
                (Part::Form(signed), Field::Form(name)) => signed == name,
                (Part::Form(signed), Field::Json(_) | Field::Xml(_)) => !signed.is_empty(),
                (Part::Query(signed), Field::Query(name)) => signed == name,
                (Part::Url, Field::Query(_)) => true,
                _ => false,
            }
        })
    }

    /// Whether it covers the whole body, in a way that leaves no room.
    pub(super) fn covers_body(&self) -> bool {
        self.signed.iter().any(|part| matches!(part, Part::Body | Part::BodyHash { .. }))
    }

    /// Whether the signed time stands directly beside the body, so that characters of one could be
    /// taken for the other's.
    pub(crate) fn joins_time_and_body(&self) -> bool {
        let is_body = |part: &Part| *part == Part::Body;
        let is_time = |part: &Part| *part == Part::Timestamp;
        self.signed.windows(2).any(|pair| {
            is_time(&pair[0]) && is_body(&pair[1]) || is_body(&pair[0]) && is_time(&pair[1])
        })
    }

    /// Whether some part of it is read from a form.
    pub(super) fn reads_forms(&self) -> bool {
        let stamp = self.timestamp.as_ref().map(|stamp| &stamp.place);
        let mut places = std::iter::once(&self.place).chain(stamp);
        places.any(|place| matches!(place, Place::Form(_)))
            || self.signed.iter().any(|part| matches!(part, Part::Form(_)))
    }

    /// Whether it covers a time that is checked.
    pub(super) fn signs_timestamp(&self) -> bool {
        match &self.timestamp {
            Some(Stamp { tolerance_secs: None, .. }) | None => false,
            Some(Stamp { place: Place::Json(pointer), .. }) => {
                self.covers_body() || self.signed.contains(&Part::Json(pointer.clone()))
            }
            Some(_) => self.signed.contains(&Part::Timestamp),
        }
    }
}

/// What makes a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-1, which is safe inside an HMAC; some providers use nothing else.
    HmacSha1,
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-512.
    HmacSha512,
    /// A plain SHA-1 of text that holds the secret.
    Sha1,
    /// A plain SHA-256 of text that holds the secret.
    Sha256,
    /// Ed25519.
    Ed25519,
    /// ECDSA on P-256 with SHA-256, in DER.
    EcdsaP256Sha256,
    /// ECDSA on P-256 with SHA-1, in DER.
    EcdsaP256Sha1,
    /// RSA PKCS#1 v1.5 with SHA-1.
    RsaSha1,
    /// RSA PKCS#1 v1.5 with SHA-256.
    RsaSha256,
    /// RSA PKCS#1 v1.5 with SHA-512.
    RsaSha512,
    /// RSA-PSS with SHA-512.
    RsaPssSha512,
}

impl Algorithm {
    /// A short, stable name for logs and receipts.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::HmacSha1 => "hmac-sha1",
            Algorithm::HmacSha256 => "hmac-sha256",
            Algorithm::HmacSha512 => "hmac-sha512",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Ed25519 => "ed25519",
            Algorithm::EcdsaP256Sha256 => "ecdsa-p256-sha256",
            Algorithm::EcdsaP256Sha1 => "ecdsa-p256-sha1",
            Algorithm::RsaSha1 => "rsa-sha1",
            Algorithm::RsaSha256 => "rsa-sha256",
            Algorithm::RsaSha512 => "rsa-sha512",
            Algorithm::RsaPssSha512 => "rsa-pss-sha512",
        }
    }

    /// How many bytes a signature has; none if that depends on the key.
    pub fn signature_len(self) -> Option<usize> {
        match self {
            Algorithm::HmacSha1 | Algorithm::Sha1 => Some(20),
            Algorithm::HmacSha256 | Algorithm::Sha256 => Some(32),
            Algorithm::HmacSha512 | Algorithm::Ed25519 => Some(64),
            Algorithm::EcdsaP256Sha256
            | Algorithm::EcdsaP256Sha1
            | Algorithm::RsaSha1
            | Algorithm::RsaSha256
            | Algorithm::RsaSha512
            | Algorithm::RsaPssSha512 => None,
        }
    }

    /// Whether it takes a key pair: the private key signs, the public key checks.
    pub fn is_asymmetric(self) -> bool {
        self == Algorithm::Ed25519 || self.signature_len().is_none()
    }
}

/// How a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Lower-case hex digits.
    Hex,
    /// Upper-case hex digits.
    HexUpper,
    /// Hex digits of either case.
    HexAnyCase,
    /// Padded base64.
    Base64,
    /// Base64 for URLs, padded or not.
    Base64Url,
    /// Padded base64 of the lower-case hex digits.
    Base64OfHex,
    /// Padded base64 whose signs may be percent-encoded.
    Base64Percent,
}

/// How a secret becomes a key, or where else the key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// The bytes of the text.
    Text,
    /// The bytes of the text in Unicode normal form NFKD.
    Nfkd,
    /// The SHA-1 of the text.
    Sha1OfText,
    /// The bytes of the text after a prefix of the form `signkey-…-`, where it has one.
    AfterSignkey,
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
    /// Base64 after `whsec_`; a secret that is nothing of the kind belongs to another scheme.
    WhsecIfBase64,
    /// An Ed25519 key in base64 after `whpk_`, which is the public one, or `whsk_`, which is the
    /// private one and can sign too; any other secret belongs to another scheme.
    Whpk,
    /// A public key: PEM, a certificate in PEM, DER in base64, a JWK, or for Ed25519 the bytes in
    /// hex or base64. A private key in PEM can sign too.
    Public,
    /// The certificate at a URL that the request names.
    Certificate(CertificateAt),
}

/// Where a certificate may be fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateAt {
    /// Where the request names the URL.
    pub url: Field,
    /// The hosts it may name; `*` stands for one label.
    pub hosts: List<Text>,
    /// What the path must end with.
    pub path_end: Text,
    /// What the name of its subject must end with.
    pub subject_end: Text,
    /// Whether the whole chain is served and must lead to a root that is trusted on the web.
    pub chained: bool,
}

/// Where a signature or a timestamp is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A header of its own, sent once.
    Header(Text),
    /// A header that may be sent several times, each with one signature.
    Repeated(Text),
    /// Several headers; those present are tried.
    AnyOf(List<Text>),
    /// Headers that begin with this and end in a number from 1 on.
    Numbered(Text),
    /// A labelled value in a header such as `t=1,v1=ab`.
    Label {
        /// The header.
        header: Text,
        /// The label in front of `=`.
        label: Text,
        /// The characters that separate two labelled values.
        separators: Text,
    },
    /// The first value in a header such as `1760000000,ab,cd`.
    First {
        /// The header.
        header: Text,
        /// What separates two values.
        separator: char,
    },
    /// Every value but the first in such a header.
    Rest {
        /// The header.
        header: Text,
        /// What separates two values.
        separator: char,
    },
    /// A parameter of the query.
    Query(Text),
    /// A field of a form body.
    Form(Text),
    /// A JSON pointer into the body.
    Json(Text),
    /// A JSON pointer into each item of a batch: every item has a signature of its own.
    Item(Text),
}

impl Place {
    /// Whether it is in this header.
    pub(crate) fn is_header(&self, name: &str) -> bool {
        let is_it = |header: &Text| header.eq_ignore_ascii_case(name);
        match self {
            Place::Header(header)
            | Place::Repeated(header)
            | Place::Label { header, .. }
            | Place::First { header, .. }
            | Place::Rest { header, .. } => is_it(header),
            Place::AnyOf(headers) => headers.iter().any(is_it),
            // Their names go on with a number.
            Place::Numbered(start) => {
                name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
            }
            Place::Query(_) | Place::Form(_) | Place::Json(_) | Place::Item(_) => false,
        }
    }
}

/// A signed time and how far it may be from ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Where it is.
    pub place: Place,
    /// How it is written.
    pub format: TimeFormat,
    /// How many seconds it may be off, in both directions, inclusive. None where the provider
    /// signs retries with the first time, so that no limit would be right.
    pub tolerance_secs: Option<u32>,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// Unix seconds.
    Seconds,
    /// Unix milliseconds.
    Milliseconds,
    /// RFC 3339, such as `2026-01-02T03:04:05Z`; UTC where no zone is written.
    Iso8601,
    /// The form of the `Date` header.
    HttpDate,
    /// Not a time but text that is signed in its place and never checked.
    Nonce,
}

/// One part of what is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The timestamp exactly as sent.
    Timestamp,
    /// The raw body.
    Body,
    /// A hash of the raw body, written out.
    BodyHash {
        /// `Sha256` or another plain hash.
        algorithm: Algorithm,
        /// How it is written.
        encoding: Encoding,
    },
    /// The CRC-32 of the raw body in decimal digits. It proves nothing of the body: another
    /// body with the same sum is easily made.
    BodyCrc32,
    /// The URL as the provider saw it.
    Url,
    /// The path and the query of the URL.
    PathAndQuery,
    /// The method, in upper case.
    Method,
    /// The value of a header.
    Header(Text),
    /// The value of a parameter of the query.
    Query(Text),
    /// The value of a field of a form body.
    Form(Text),
    /// The text of a JSON value in the body; nothing where it is missing or null.
    Json(Text),
    /// The same of a value that must be of one kind: where several are signed without anything
    /// between them, their kinds tell where each ends.
    JsonAs(Text, ValueKind),
    /// A JSON value of the body exactly as it is written there.
    JsonRaw(Text),
    /// The text of a JSON value in the item; nothing where it is missing or null.
    Item(Text),
    /// The secret itself, for plain hashes.
    Secret,
    /// What the source says under this key.
    Setting(Text),
    /// Constant text.
    Text(Text),
}

impl Part {
    /// Whether it is text of the request that may be of any length and hold anything.
    fn is_loose(&self) -> bool {
        matches!(
            self,
            Part::Json(_) | Part::JsonAs(..) | Part::Item(_) | Part::Form(_) | Part::Query(_)
        )
    }
}

/// What a JSON value that is signed must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// An integer, written as a number and without a sign.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A string that begins with a date and a time of day, `2026-01-02T03:04:05`.
    Time,
    /// A string of three capital letters.
    Currency,
    /// A string, or nothing.
    Text,
}
