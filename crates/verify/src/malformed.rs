//! Why no identity can be read.

use crate::provider::Text;

/// Why a verified request cannot be recorded: its identity, type or object
/// cannot be read without guessing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The body is not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// The body is not one complete JSON value.
    #[error("the body is not JSON: line {line}, column {column}")]
    NotJson {
        /// The line of the first error, from 1.
        line: usize,
        /// The column of the first error, from 1.
        column: usize,
    },
    /// The body is JSON, but neither an object nor an array.
    #[error("the body is not a JSON object")]
    NotObject,
    /// The body nests deeper than anyone needs.
    #[error("the body nests deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A key we read is there twice; parsers disagree about which one counts.
    #[error("the key `{key}` is repeated")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Nothing that could be the identity is there.
    #[error("no identity: looked for {looked_for}")]
    NoIdentity {
        /// Where it was looked for.
        looked_for: String,
    },
    /// The identity, type or object cannot be used as a key.
    #[error("the {what} is {why}")]
    BadValue {
        /// `event id`, `event type` or `object id`.
        what: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header we read is there twice.
    #[error("header `{name}` is repeated")]
    RepeatedHeader {
        /// The header.
        name: Text,
    },
    /// The payload is not one complete XML document that we would read.
    #[error("the payload is not XML that can be read: {why}")]
    NotXml {
        /// What is wrong with it.
        why: &'static str,
    },
    /// One of several events is no object.
    #[error("one of the events is not an object")]
    ItemNotObject,
    /// There are more events in one request than any provider sends.
    #[error("there are more than {limit} events in the request")]
    TooManyEvents {
        /// The limit.
        limit: usize,
    },
}

impl Malformed {
    /// Every code there is, for the labels of a metric.
    pub const CODES: &[&str] = &[
        "not_utf8",
        "not_json",
        "not_object",
        "too_deep",
        "duplicate_key",
        "no_identity",
        "bad_value",
        "repeated_header",
        "not_xml",
        "item_not_object",
        "too_many_events",
    ];

    /// A stable name for logs, metrics and the console. Never renamed.
    pub fn code(&self) -> &'static str {
        match self {
            Malformed::NotUtf8 => "not_utf8",
            Malformed::NotJson { .. } => "not_json",
            Malformed::NotObject => "not_object",
            Malformed::TooDeep { .. } => "too_deep",
            Malformed::DuplicateKey { .. } => "duplicate_key",
            Malformed::NoIdentity { .. } => "no_identity",
            Malformed::BadValue { .. } => "bad_value",
            Malformed::RepeatedHeader { .. } => "repeated_header",
            Malformed::NotXml { .. } => "not_xml",
            Malformed::ItemNotObject => "item_not_object",
            Malformed::TooManyEvents { .. } => "too_many_events",
        }
    }

    /// What the operator should check.
    pub fn hint(&self) -> String {
        let hint = match self {
            Malformed::NotUtf8 | Malformed::NotJson { .. } | Malformed::NotObject => {
                "set the content type of the webhook to JSON at the provider"
            }
            Malformed::TooDeep { .. }
            | Malformed::DuplicateKey { .. }
            | Malformed::NotXml { .. }
            | Malformed::ItemNotObject => "no provider writes this; who holds the secret?",
            Malformed::NoIdentity { .. } => {
                "is this source set to the right provider? a generic one can name another field, \
                 or `digest`"
            }
            Malformed::BadValue { .. } => {
                "at most 512 bytes of text without control characters can be a key"
            }
            Malformed::TooManyEvents { .. } => "set a smaller batch size at the provider",
            Malformed::RepeatedHeader { .. } => "does a proxy add headers?",
        };
        hint.to_owned()
    }
}
