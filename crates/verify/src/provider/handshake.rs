//! Questions a provider asks, and what it wants to hear.

use super::{Algorithm, Encoding, Field, List, Text};

/// A question that is answered at once and never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Which methods ask it.
    pub methods: List<Text>,
    /// What tells it from an event.
    pub wants: Wants,
    /// Whether the request must be signed like an event. An unsigned one is answered only where
    /// the provider has no other way to ask.
    pub signed: bool,
    /// A field that must equal what the source says under this key, or one of its secrets.
    pub token: Option<(Field, Text)>,
    /// What the answer is made from. Text that is hashed with the secret must be short and plain,
    /// or the answer would sign events for whoever asks.
    pub challenge: Option<Field>,
    /// The status of the answer.
    pub status: u16,
    /// Headers of the answer.
    pub headers: List<(Text, Piece)>,
    /// The body of the answer.
    pub says: Said,
}

/// What tells a handshake from an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Nothing but the method.
    Method,
    /// A field is there.
    Has(Field),
    /// A field has this text.
    Is(Field, Text),
    /// The same, and another field is not there.
    IsWithout(Field, Text, Field),
    /// The body is empty.
    EmptyBody,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing.
    Nothing,
    /// Plain text.
    Text(List<Piece>),
    /// A JSON object.
    Json(List<(Text, List<Piece>)>),
    /// Exactly this JSON.
    Exactly(Text),
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Constant text.
    Text(Text),
    /// The challenge, as it came.
    Challenge,
    /// The value of another field of the request.
    Field(Field),
    /// What the source says under this key.
    Setting(Text),
    /// The HMAC of the challenge with the first secret.
    Mac(Algorithm, Encoding),
    /// Braintree's answer: the HMAC-SHA1, in hex, of a challenge of 20 to 32 hex digits, keyed
    /// with the SHA-1 of the first secret.
    BraintreeMac,
    /// The plain SHA-256, in hex, of the challenge, a setting and the URL.
    Sha256WithSettingAndUrl(Text),
}

/// How a provider tells the secret it chose. Heard only in a window that the operator opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// Where the secret is.
    pub secret: Field,
    /// Whether the answer repeats it, and in which header.
    pub echo: Option<Text>,
}
