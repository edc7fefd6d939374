//! What a provider is: data that says how to verify, read and answer its webhooks.

use std::borrow::Cow;

mod choice;
mod event;
mod handshake;
mod jws;
mod odd;
mod scheme;
mod signature;
mod token;

pub(crate) use choice::{ANY, SCHEME};
pub use choice::{Choice, Unsaid, Way};
pub use event::{
    Answer, Batch, Field, Guard, Identity, Payload, Sample, Setting, TypeRule, Unit, Version,
};
pub use handshake::{Handshake, Pairing, Piece, Said, Wants};
pub use jws::{Claim, HashForm, Jws, JwsAlgorithm, JwsKeys, JwsPayload};
pub use odd::{Odd, OddAct, OddRule, OddWords};
pub use scheme::Scheme;
pub use signature::{
    Algorithm, CertificateAt, Encoding, KeyForm, Part, Place, Signature, Stamp, TimeFormat,
    ValueKind,
};
pub use token::{Token, TokenKind, TokenPlace};

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
    /// Whether a part of the entry could not be confirmed by the provider's own words or code.
    pub experimental: bool,
    /// Ways to prove a request; the first whose signature is present decides.
    pub schemes: List<Scheme>,
    /// Which of these ways a source may choose by its setting `scheme`, where they differ in
    /// strength. Without it all of them count.
    pub choice: Option<&'static Choice>,
    /// Headers that must say exactly this, whatever else proves the request.
    pub fixed_headers: List<(Text, Text)>,
    /// What a source says beside its secrets, such as PayPal's id of the webhook.
    pub settings: List<Setting>,
    /// Where the event is in the request, unless it is the body.
    pub payload: Payload,
    /// How one request carries several events; every list that is there is taken. None where a
    /// request is one event.
    pub batches: List<Batch>,
    /// Where the identity is; the first one present is used. None that a scheme leaves
    /// unsigned stands before one that it signs: whoever captured a request could add it.
    pub identity: List<Identity>,
    /// Where the event type is; the first one present is used.
    pub event_type: List<TypeRule>,
    /// Where the id of the business object is; the first one present is used.
    pub object: List<Field>,
    /// Where the ordering value of the object is; the first one present is used.
    pub version: List<Version>,
    /// JSON pointers whose values change between attempts of one event; of a batch, within the
    /// item.
    pub volatile: List<Text>,
    /// What must not come in again under another identity that is not signed.
    pub guard: Guard,
    /// What it says itself of arrivals that look odd; [`Provider::odd`] adds what follows.
    pub odd_words: OddWords,
    /// Questions the provider asks before it sends events, or between them.
    pub handshakes: List<Handshake>,
    /// How the provider tells its secret, where it chooses one itself.
    pub pairing: Option<&'static Pairing>,
    /// What the provider wants to hear instead of our usual answer.
    pub answer: Option<Answer>,
    /// How the provider retries, in a sentence.
    pub retry: Text,
    /// For how many hours after an event the provider may still send it again by itself; 0 where it
    /// does not say, or does not retry.
    pub retry_hours: u32,
    /// How missed events can be had from the provider: by a list, or by asking it to send them
    /// again. Empty where no way is known.
    pub recovery: Text,
    /// Where an operator finds the secret, in a sentence.
    pub find_secret: Text,
    /// What else an operator should know; may be empty.
    pub notes: Text,
    /// The type a sample event has unless told otherwise.
    pub sample_type: Text,
    /// The rest of a sample event.
    pub sample: Sample,
}

/// Whether the events of a provider come as forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    /// Never: the body is read in another way.
    Never,
    /// Where the content type says so, or says nothing.
    Typed,
    /// Always: nothing else is read, whatever the content type says.
    Always,
}

impl Provider {
    /// Whether every way to prove a request also proves when it was sent.
    pub fn signs_timestamp(&self) -> bool {
        self.schemes.iter().all(Scheme::signs_timestamp)
    }

    /// Whether some requests are events of their own, under a name that is made up: a captured one
    /// is accepted as often as it comes.
    pub fn takes_each(&self) -> bool {
        self.identity.contains(&Identity::Each)
    }

    /// Whether some way to prove a request covers the URL it was sent to.
    pub fn signs_url(&self) -> bool {
        self.schemes.iter().any(Scheme::signs_url)
    }

    /// Whether a source may do without any secret: a key that proves requests is fetched from the
    /// provider.
    pub fn needs_no_secret(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.fetches_keys() && !scheme.signs_secret())
    }

    /// Whether what is called the secret is no key but a part of what is signed.
    pub(crate) fn signs_secret(&self) -> bool {
        self.schemes.iter().any(Scheme::signs_secret)
    }

    /// Whether a captured request could come back under a new identity, so that its
    /// [`guard_digest`](crate::guard_digest()) must be remembered too: some identity is not
    /// signed, or the signature covers less than the body, and no time is signed together with
    /// the body.
    pub fn guards_twins(&self) -> bool {
        // What is not signed can also be changed under an id that is.
        let is_partly_signed = self.guard == Guard::Signed && !self.covers_body();
        let is_dated = self.schemes.iter().all(Scheme::dates_body);
        let is_exposed = self.has_unsigned_identity() || is_partly_signed;
        is_exposed && self.guard != Guard::Nothing && !is_dated
    }

    /// Whether some identity, or the content that it is a digest of, is not signed.
    fn has_unsigned_identity(&self) -> bool {
        let unsigned = |field: &Field| !self.schemes.iter().all(|scheme| scheme.covers(field));
        self.identity.iter().any(|identity| match identity {
            Identity::Field(field) => unsigned(field),
            Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
                fields.iter().any(unsigned)
            }
            Identity::Each => false,
            // The digest of what is not signed changes with it.
            Identity::Digest => {
                self.guard == Guard::Signed && unsigned(&Field::Json(Text::Borrowed("")))
            }
        })
    }

    /// Whether [`content_digest`](crate::content_digest()) is the SHA-256 of the raw body, so
    /// that whoever has that need not compute it again.
    pub fn content_is_body(&self) -> bool {
        self.volatile.is_empty()
            && !matches!(self.payload, Payload::Claims(_) | Payload::Multipart(_))
            && self.signed_form_field().is_none()
            && !self.schemes.iter().any(Scheme::respells_body)
    }

    /// The field of a form that holds the payload, where that is signed and not the form around it.
    pub(crate) fn signed_form_field(&self) -> Option<&'static str> {
        let Payload::FormJson(field) = self.payload else { return None };
        let is_it = |part: &Part| matches!(part, Part::Form(name) if name == field);
        let mut signatures = self.schemes.iter().filter_map(Scheme::signature);
        signatures.any(|signature| signature.signed.iter().any(is_it)).then_some(field)
    }

    /// The fields that tell what an event is.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        let fields = self.identity.iter().flat_map(Identity::fields);
        let fields = fields.chain(self.event_type.iter().flat_map(TypeRule::fields));
        let fields = fields.chain(self.object.iter());
        fields.chain(self.version.iter().map(|version| &version.field))
    }

    /// Whether some of what tells what an event is comes from the body.
    pub(crate) fn reads_body(&self) -> bool {
        self.fields().any(Field::is_in_body)
    }

    /// Whether its events come as forms. What the entry does not read as a form is none, whatever
    /// its content type says: that is not signed.
    pub(crate) fn forms(&self) -> Forms {
        let is_form = |field: &Field| matches!(field, Field::Form(_));
        let reads_form = self.fields().any(is_form);
        let is_signed_as_form = self.schemes.iter().any(Scheme::reads_forms);
        let reads_else = self.fields().any(|field| field.is_in_body() && !is_form(field));
        match self.payload {
            Payload::Body if reads_form && !reads_else && !is_signed_as_form => Forms::Always,
            Payload::Body if reads_form || is_signed_as_form => Forms::Typed,
            Payload::FormJson(_) | Payload::FormXml(_) => Forms::Typed,
            Payload::Body
            | Payload::Any
            | Payload::Multipart(_)
            | Payload::Xml
            | Payload::Claims(_) => Forms::Never,
        }
    }

    /// Whether a header is needed to prove a request, or to tell what its event is.
    pub fn reads_header(&self, name: &str) -> bool {
        let is_it = |field: &Field| match field {
            Field::Header(header) => header.eq_ignore_ascii_case(name),
            _ => false,
        };
        self.schemes.iter().any(|scheme| scheme.reads_header(name))
            || self.fixed_headers.iter().any(|(fixed, _)| fixed.eq_ignore_ascii_case(name))
            || self.fields().any(is_it)
    }

    /// The parameters of the query that tell what an event is. Where there are some, the URL that
    /// a request came to is a part of the event.
    pub fn query_fields(&self) -> Vec<&str> {
        let names = self.fields().filter_map(|field| match field {
            Field::Query(name) => Some(name.as_ref()),
            _ => None,
        });
        names.collect()
    }

    /// Headers that carry a credential; keep them only as fingerprints.
    pub fn credential_headers(&self) -> impl Iterator<Item = &str> {
        let told = self.pairing.and_then(|pairing| match &pairing.secret {
            Field::Header(name) => Some(name.as_ref()),
            _ => None,
        });
        self.schemes.iter().filter_map(Scheme::credential_header).chain(told)
    }

    /// Parameters of the query that carry a credential.
    pub fn credential_parameters(&self) -> impl Iterator<Item = &str> {
        self.schemes.iter().filter_map(|scheme| match scheme {
            Scheme::Token(Token { place: TokenPlace::Query(name), .. }) => Some(name.as_ref()),
            _ => None,
        })
    }

    /// Whether a credential is sent within the body.
    pub fn has_credential_in_body(&self) -> bool {
        let is_in_body =
            |place: &TokenPlace| matches!(place, TokenPlace::Json(_) | TokenPlace::Item(_));
        self.schemes
            .iter()
            .any(|scheme| matches!(scheme, Scheme::Token(token) if is_in_body(&token.place)))
    }
}
