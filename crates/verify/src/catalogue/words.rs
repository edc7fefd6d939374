//! Short words for the entries: each is what it says.

pub(super) use std::borrow::Cow;

pub(super) use crate::provider::{
    Algorithm, Answer, Batch, CertificateAt, Choice, Claim, Encoding, Field, Guard, Handshake,
    HashForm, Identity, Jws, JwsAlgorithm, JwsKeys, JwsPayload, KeyForm, List, OddAct, OddRule,
    OddWords, Pairing, Part, Payload, Piece, Place, Provider, Said, Sample, Scheme, Setting,
    Signature, Stamp, Text, TimeFormat, Token, TokenKind, TokenPlace, TypeRule, Unit, Unsaid,
    ValueKind, Version, Wants, Way,
};
pub(super) use crate::special::Special;
pub(super) use asking::*;

mod asking;

/// What one entry has of its own; the rest is [`BLANK`].
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) docs: &'static str,
    pub(super) experimental: bool,
    pub(super) schemes: &'static [Scheme],
    pub(super) choice: Option<&'static Choice>,
    pub(super) fixed_headers: &'static [(Text, Text)],
    pub(super) settings: &'static [Setting],
    pub(super) payload: Payload,
    pub(super) batches: &'static [Batch],
    pub(super) identity: &'static [Identity],
    pub(super) event_type: &'static [TypeRule],
    pub(super) object: &'static [Field],
    pub(super) version: &'static [Version],
    pub(super) volatile: &'static [Text],
    pub(super) guard: Guard,
    pub(super) twins: Option<(OddAct, &'static str)>,
    pub(super) types_share_body: Option<&'static str>,
    pub(super) conflicts_are_news: Option<&'static str>,
    pub(super) handshakes: &'static [Handshake],
    pub(super) pairing: Option<&'static Pairing>,
    pub(super) answer: Option<Answer>,
    pub(super) retry: &'static str,
    pub(super) retry_hours: u32,
    pub(super) recovery: &'static str,
    pub(super) find_secret: &'static str,
    pub(super) notes: &'static str,
    pub(super) sample_type: &'static str,
    pub(super) sample_headers: &'static [(Text, Text)],
    pub(super) sample_body: &'static str,
    pub(super) sample_object: &'static str,
    pub(super) sample_form: bool,
}

pub(super) const BLANK: Entry = Entry {
    name: "",
    title: "",
    docs: "",
    experimental: false,
    schemes: &[],
    choice: None,
    fixed_headers: &[],
    settings: &[],
    payload: Payload::Body,
    batches: &[],
    identity: &[],
    event_type: &[],
    object: &[],
    version: &[],
    volatile: &[],
    guard: Guard::Content,
    twins: None,
    types_share_body: None,
    conflicts_are_news: None,
    handshakes: &[],
    pairing: None,
    answer: None,
    retry: "",
    retry_hours: 0,
    recovery: "",
    find_secret: "",
    notes: "",
    sample_type: "",
    sample_headers: &[],
    sample_body: "{}",
    sample_object: "object_sample",
    sample_form: false,
};

impl Entry {
    pub(super) const fn provider(self) -> Provider {
        Provider {
            name: text(self.name),
            title: text(self.title),
            docs: text(self.docs),
            experimental: self.experimental,
            schemes: list(self.schemes),
            choice: self.choice,
            fixed_headers: list(self.fixed_headers),
            settings: list(self.settings),
            payload: self.payload,
            batches: list(self.batches),
            identity: list(self.identity),
            event_type: list(self.event_type),
            object: list(self.object),
            version: list(self.version),
            volatile: list(self.volatile),
            guard: self.guard,
            odd_words: OddWords {
                twins: match self.twins {
                    Some((act, why)) => Some(OddRule { act, why: text(why) }),
                    None => None,
                },
                types_share_body: optional_text(self.types_share_body),
                conflicts_are_news: optional_text(self.conflicts_are_news),
            },
            handshakes: list(self.handshakes),
            pairing: self.pairing,
            answer: self.answer,
            retry: text(self.retry),
            retry_hours: self.retry_hours,
            recovery: text(self.recovery),
            find_secret: text(self.find_secret),
            notes: text(self.notes),
            sample_type: text(self.sample_type),
            sample: Sample {
                headers: list(self.sample_headers),
                body: text(self.sample_body),
                object: text(self.sample_object),
                form: self.sample_form,
            },
        }
    }
}

pub(super) const fn text(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

const fn optional_text(words: Option<&'static str>) -> Option<Text> {
    match words {
        Some(words) => Some(text(words)),
        None => None,
    }
}

pub(super) const fn list<T: Clone>(items: &'static [T]) -> List<T> {
    Cow::Borrowed(items)
}

// Where values are.

pub(super) const fn json(pointer: &'static str) -> Field {
    Field::Json(text(pointer))
}

pub(super) const fn item(pointer: &'static str) -> Field {
    Field::Item(text(pointer))
}

pub(super) const fn outer(pointer: &'static str) -> Field {
    Field::Outer(text(pointer))
}

pub(super) const fn header(name: &'static str) -> Field {
    Field::Header(text(name))
}

pub(super) const fn form(name: &'static str) -> Field {
    Field::Form(text(name))
}

pub(super) const fn query(name: &'static str) -> Field {
    Field::Query(text(name))
}

// What they mean.

pub(super) const fn id(field: Field) -> Identity {
    Identity::Field(field)
}

pub(super) const fn kind(first: Field) -> TypeRule {
    TypeRule { text: text(""), first, then: None }
}

pub(super) const fn kind_with(first: Field, then: Field) -> TypeRule {
    TypeRule { text: text(""), first, then: Some(then) }
}

/// A type that begins with constant text.
pub(super) const fn kind_after(before: &'static str, first: Field) -> TypeRule {
    TypeRule { text: text(before), first, then: None }
}

pub(super) const fn version(field: Field, unit: Unit) -> Version {
    Version { field, unit }
}

pub(super) const fn needed(key: &'static str, help: &'static str) -> Setting {
    Setting { key: text(key), needed: true, help: text(help), header: None }
}

pub(super) const fn optional(key: &'static str, help: &'static str) -> Setting {
    Setting { key: text(key), needed: false, help: text(help), header: None }
}

/// Something that a header must say too, where the source says it.
pub(super) const fn said_in(
    header: &'static str,
    key: &'static str,
    help: &'static str,
) -> Setting {
    Setting { key: text(key), needed: false, help: text(help), header: Some(text(header)) }
}

/// The array of events at a pointer; empty for a body that is the array.
pub(super) const fn batch(items: &'static str) -> Batch {
    Batch { items: text(items), inner: list(&[]) }
}

/// One way to prove a request, of those that a source chooses from.
pub(super) const fn way(name: &'static str, schemes: &'static [usize]) -> Way {
    Way { name, schemes: list(schemes) }
}

/// The strongest of these ways, which come first, is required unless the source says otherwise.
pub(super) const fn strongest_of(ways: &'static [Way]) -> Choice {
    Choice { ways: list(ways), unsaid: Unsaid::Strongest }
}

/// The strongest of these ways is required once it was seen, unless the source says otherwise.
pub(super) const fn learned_of(ways: &'static [Way]) -> Choice {
    Choice { ways: list(ways), unsaid: Unsaid::Learned }
}

/// Twins are held, because.
pub(super) const fn hold(why: &'static str) -> Option<(OddAct, &'static str)> {
    Some((OddAct::Hold, why))
}

/// Twins are delivered, because.
pub(super) const fn deliver(why: &'static str) -> Option<(OddAct, &'static str)> {
    Some((OddAct::Deliver, why))
}

// Signatures.

pub(super) const TIME: Part = Part::Timestamp;
pub(super) const BODY: Part = Part::Body;
pub(super) const SECONDS: TimeFormat = TimeFormat::Seconds;
pub(super) const MILLISECONDS: TimeFormat = TimeFormat::Milliseconds;
pub(super) const ISO: TimeFormat = TimeFormat::Iso8601;

pub(super) const fn lit(constant: &'static str) -> Part {
    Part::Text(text(constant))
}

pub(super) const fn in_header(name: &'static str) -> Place {
    Place::Header(text(name))
}

/// A labelled value such as `v1=` in a list whose parts are separated so.
pub(super) const fn label(
    header: &'static str,
    separators: &'static str,
    label: &'static str,
) -> Place {
    Place::Label { header: text(header), label: text(label), separators: text(separators) }
}

/// HMAC-SHA256 over the raw body alone, in lower-case hex, keyed with the text of the secret.
pub(super) const fn hmac(place: Place) -> Signature {
    Signature {
        algorithm: Algorithm::HmacSha256,
        place,
        prefix: text(""),
        separator: None,
        encoding: Encoding::Hex,
        timestamp: None,
        signed: list(&[Part::Body]),
        key: KeyForm::Text,
    }
}

/// A signature over the raw body alone, in base64, checked with the provider's public key.
pub(super) const fn signed_by(algorithm: Algorithm, place: Place) -> Signature {
    hmac(place).algorithm(algorithm).base64().key(KeyForm::Public)
}

/// What differs from the plainest of signatures.
impl Signature {
    pub(super) const fn scheme(self) -> Scheme {
        Scheme::Signature(self)
    }

    pub(super) const fn algorithm(mut self, algorithm: Algorithm) -> Signature {
        self.algorithm = algorithm;
        self
    }

    pub(super) const fn sha1(self) -> Signature {
        self.algorithm(Algorithm::HmacSha1)
    }

    pub(super) const fn sha512(self) -> Signature {
        self.algorithm(Algorithm::HmacSha512)
    }

    pub(super) const fn base64(self) -> Signature {
        self.encoding(Encoding::Base64)
    }

    pub(super) const fn encoding(mut self, encoding: Encoding) -> Signature {
        self.encoding = encoding;
        self
    }

    /// Several signatures in one header, separated so.
    pub(super) const fn separated(mut self, separator: char) -> Signature {
        self.separator = Some(separator);
        self
    }

    pub(super) const fn prefix(mut self, prefix: &'static str) -> Signature {
        std::mem::forget(std::mem::replace(&mut self.prefix, text(prefix)));
        self
    }

    pub(super) const fn over(mut self, parts: List<Part>) -> Signature {
        std::mem::forget(std::mem::replace(&mut self.signed, parts));
        self
    }

    pub(super) const fn key(mut self, key: KeyForm) -> Signature {
        std::mem::forget(std::mem::replace(&mut self.key, key));
        self
    }

    /// The time that is signed, and how many seconds it may be off.
    pub(super) const fn stamp(self, place: Place, format: TimeFormat, secs: u32) -> Signature {
        self.timed(Stamp { place, format, tolerance_secs: Some(secs) })
    }

    /// A time that is signed and may be of any age, because retries keep it.
    pub(super) const fn undated(self, place: Place, format: TimeFormat) -> Signature {
        self.timed(Stamp { place, format, tolerance_secs: None })
    }

    const fn timed(mut self, stamp: Stamp) -> Signature {
        std::mem::forget(self.timestamp.replace(stamp));
        self
    }
}

/// Standard Webhooks with the headers of one family: `v1,` and base64 over
/// `{id}.{timestamp}.{body}`, several separated by spaces.
pub(super) const fn standard(names: &'static StandardHeaders, key: KeyForm) -> Scheme {
    hmac(in_header(names.signature))
        .base64()
        .prefix("v1,")
        .separated(' ')
        .stamp(in_header(names.timestamp), SECONDS, 300)
        .over(list(names.signed))
        .key(key)
        .scheme()
}

/// The same signed with a private key: `v1a,` and base64 of an Ed25519 signature.
pub(super) const fn standard_v1a(names: &'static StandardHeaders) -> Scheme {
    hmac(in_header(names.signature))
        .algorithm(Algorithm::Ed25519)
        .base64()
        .prefix("v1a,")
        .separated(' ')
        .stamp(in_header(names.timestamp), SECONDS, 300)
        .over(list(names.signed))
        .key(KeyForm::Whpk)
        .scheme()
}

/// The header names of one family of Standard Webhooks, and what they sign.
pub(super) struct StandardHeaders {
    signature: &'static str,
    timestamp: &'static str,
    signed: &'static [Part],
}

pub(super) const WEBHOOK: StandardHeaders = StandardHeaders {
    signature: "webhook-signature",
    timestamp: "webhook-timestamp",
    signed: &[Part::Header(text("webhook-id")), lit("."), TIME, lit("."), BODY],
};

pub(super) const SVIX_NAMES: StandardHeaders = StandardHeaders {
    signature: "svix-signature",
    timestamp: "svix-timestamp",
    signed: &[Part::Header(text("svix-id")), lit("."), TIME, lit("."), BODY],
};

/// Signed under `webhook-*` with a secret that is base64 after `whsec_`.
pub(super) const BY_WEBHOOK: &[Scheme] = &[standard(&WEBHOOK, KeyForm::Whsec)];

/// Delivered by Svix, which may use either set of names.
pub(super) const BY_SVIX: &[Scheme] =
    &[standard(&SVIX_NAMES, KeyForm::Whsec), standard(&WEBHOOK, KeyForm::Whsec)];

pub(super) const WEBHOOK_ID: &[Identity] = &[id(header("webhook-id"))];
pub(super) const SVIX_ID: &[Identity] = &[id(header("svix-id")), id(header("webhook-id"))];

// Credentials.

/// A token that is the whole value of a header.
pub(super) const fn token(name: &'static str) -> Scheme {
    token_at(TokenPlace::Header(text(name)), TokenKind::Plain)
}

/// `user:password` in `Authorization`.
pub(super) const BASIC: Scheme =
    token_at(TokenPlace::Header(text("authorization")), TokenKind::Basic);

pub(super) const fn token_at(place: TokenPlace, kind: TokenKind) -> Scheme {
    Scheme::Token(Token { place, kind, refuse_whsec: false })
}

// Tokens of JSON Web Signatures.

/// A token in a header, whose claims are only those that every token has.
pub(super) const fn jwt(
    header: &'static str,
    algorithms: List<JwsAlgorithm>,
    keys: JwsKeys,
) -> Jws {
    let payload = JwsPayload::Claims(list(&[]));
    Jws { header: Some(text(header)), word: text(""), algorithms, keys, payload }
}

impl Jws {
    pub(super) const fn scheme(self) -> Scheme {
        Scheme::Jws(self)
    }

    /// The word in front of the token.
    pub(super) const fn word(mut self, word: &'static str) -> Jws {
        std::mem::forget(std::mem::replace(&mut self.word, text(word)));
        self
    }

    pub(super) const fn claims(self, claims: List<Claim>) -> Jws {
        self.over(JwsPayload::Claims(claims))
    }

    /// What is signed instead of claims.
    pub(super) const fn over(mut self, payload: JwsPayload) -> Jws {
        std::mem::forget(std::mem::replace(&mut self.payload, payload));
        self
    }
}
