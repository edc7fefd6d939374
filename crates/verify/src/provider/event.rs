//! How the events of a provider are named, ordered, guarded, answered and shown.

use super::{List, Text};

/// Where a value is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A JSON pointer into the body.
    Json(Text),
    /// A header.
    Header(Text),
    /// A field of a form body.
    Form(Text),
}

/// What makes an event the same event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The value of one field.
    Field(Field),
    /// The values of several fields, all present, joined by `:`.
    Joined(List<Field>),
    /// `sha256:` and the [digest of the content](crate::content_digest()).
    Digest,
}

/// What a captured request is known by, whatever identity it comes under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Its content.
    Content,
    /// What is signed, exactly as it is signed: for a signature that covers less than the
    /// body, or covers it in a way that leaves room.
    Signed,
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

/// A question the provider asks before it sends events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Handshake {
    /// A body with a known value at `when` gets the text at `echo` back.
    EchoJson {
        /// The pointer that tells.
        when: Text,
        /// Its value in a handshake.
        is: Text,
        /// The pointer to the text to send back.
        echo: Text,
    },
}

/// What the provider wants to hear for an event that is kept, where `202` and a few words of JSON
/// would not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The receiver's own words under this status: no other counts as success.
    Status(u16),
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
