//! How the events of a provider are found, named, ordered, guarded, answered and shown.

use super::{List, Text};

/// Where a value is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A JSON pointer into the payload.
    Json(Text),
    /// A JSON pointer into the item of a batch.
    Item(Text),
    /// A JSON pointer into what holds the item, where batches are nested.
    Outer(Text),
    /// A JSON pointer into JSON that is itself text at another pointer.
    Within(Text, Text),
    /// The name of the first key of the payload that is none of these.
    KeyBeside(List<Text>),
    /// The text of an XML element, by the names on the way to it without their prefixes.
    Xml(Text),
    /// A header.
    Header(Text),
    /// A field of a form body.
    Form(Text),
    /// A parameter of the query.
    Query(Text),
}

impl Field {
    /// Whether the value comes from the body.
    pub fn is_in_body(&self) -> bool {
        !matches!(self, Field::Header(_) | Field::Query(_))
    }
}

/// Where the event is in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The body: JSON, or a form where the entry reads forms.
    Body,
    /// The body, whatever it is: JSON is read, anything else is only kept.
    Any,
    /// JSON in this field of a form body, or the body itself where that is no form.
    FormJson(&'static str),
    /// JSON in this field of a multipart body, or the body itself where that is none.
    Multipart(&'static str),
    /// XML in base64 in this field of a form body.
    FormXml(&'static str),
    /// An XML body.
    Xml,
    /// JSON that is text at this pointer into the claims of the token that is the body.
    Claims(&'static str),
}

/// How one request carries several events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The pointer to the array; empty where that is the payload itself.
    pub items: Text,
    /// The pointers to arrays inside each item whose elements are the events, where batches are
    /// nested; every one that is there is taken. An item with none of them is an event itself.
    pub inner: List<Text>,
}

/// What makes an event the same event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The value of one field.
    Field(Field),
    /// The values of several fields, all present, joined by `:`.
    Joined(List<Field>),
    /// The values of several fields, all present, and the digest of the content, joined by `:`.
    JoinedDigest(List<Field>),
    /// `sha256:` and the [digest of the content](crate::content_digest()); of a batch, of the
    /// item.
    Digest,
    /// Nothing: every request is an event of its own, under a name that is made up. For notices so
    /// thin that a retry and the next event are the same bytes; a digest would lose events.
    Each,
}

impl Identity {
    /// The fields it is read from.
    pub(crate) fn fields(&self) -> &[Field] {
        match self {
            Identity::Field(field) => std::slice::from_ref(field),
            Identity::Joined(fields) | Identity::JoinedDigest(fields) => fields,
            Identity::Digest | Identity::Each => &[],
        }
    }
}

/// What a captured request is known by, whatever identity it comes under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Its content.
    Content,
    /// What is signed, exactly as it is signed: for a signature that covers less than the
    /// body, or covers it in a way that leaves room.
    Signed,
    /// Nothing: what happens twice reads the same, and only an id that is not signed tells the two
    /// apart. For thin notices, which do no harm when they come again.
    Nothing,
}

/// How the event type is put together: `text`, then `first`, then `.` and `then`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRule {
    /// Constant text in front.
    pub text: Text,
    /// The rule applies if this is present.
    pub first: Field,
    /// Added after a dot if present.
    pub then: Option<Field>,
}

impl TypeRule {
    /// The fields it is read from.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        std::iter::once(&self.first).chain(self.then.as_ref())
    }
}

/// Where an ordering value is and how to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Where it is.
    pub field: Field,
    /// How it is written.
    pub unit: Unit,
}

/// How an ordering value is written. Times become milliseconds, so that two
/// ways to write one moment compare as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Unix seconds, perhaps with a fraction, or RFC 3339.
    Seconds,
    /// Unix milliseconds, or RFC 3339.
    Milliseconds,
    /// RFC 3339, or Unix seconds.
    Iso8601,
    /// An integer taken as it is, or RFC 3339.
    Plain,
}

/// What a source says beside its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key in the configuration.
    pub key: Text,
    /// Whether nothing can be verified without it.
    pub needed: bool,
    /// What it is and where to find it, in a sentence.
    pub help: Text,
    /// The header that must say the same, where the source says it.
    pub header: Option<Text>,
}

/// What the provider wants to hear for an event that is kept, where `202` and a few words of JSON
/// would not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The receiver's own words under this status: no other counts as success.
    Status(u16),
    /// This status and no body; refusals have none either.
    Silent(u16),
    /// Exactly this, because somebody reads it.
    Exactly {
        /// The status.
        status: u16,
        /// The content type.
        content_type: &'static str,
        /// The body.
        body: &'static str,
    },
}

/// What a sample event has besides its identity, type, object and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Headers as the provider sends them.
    pub headers: List<(Text, Text)>,
    /// A JSON object, or `name=value` pairs where `form` is set.
    pub body: Text,
    /// The object it is about unless told otherwise.
    pub object: Text,
    /// Whether the provider sends forms.
    pub form: bool,
}
