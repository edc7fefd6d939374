//! The compact form: three parts with dots between them, and what the first one says.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use crate::provider::JwsAlgorithm;
use crate::rejection::Rejection;

/// The longest token that is looked at; only one that is a body comes near.
const TOKEN_BYTES_MAX: usize = 1 << 20;

/// The longest first part.
const HEADER_BYTES_MAX: usize = 2048;

/// The longest last part: RSA with 8192 bits.
const SIGNATURE_BYTES_MAX: usize = 1368;

/// A token in three parts, of which only the first and the last were read.
pub(super) struct Compact<'a> {
    /// The first part as it is written.
    pub(super) header_text: &'a str,
    /// The part in the middle as it is written; empty where it is left out.
    pub(super) payload_text: &'a str,
    pub(super) header: Header,
    pub(super) signature: Vec<u8>,
    whole: &'a str,
}

/// What the first part says. Nothing of it is believed: it only tells which of our own keys and
/// algorithms to try.
pub(super) struct Header {
    pub(super) algorithm: String,
    pub(super) kid: Option<String>,
    fields: Object,
}

impl<'a> Compact<'a> {
    /// Takes a token apart. Base64 has one spelling: no padding, no bits left over.
    pub(super) fn parse(text: &'a str) -> Result<Compact<'a>, Rejection> {
        let malformed = || Rejection::MalformedSignature { expected: "a token in three parts" };
        if text.len() > TOKEN_BYTES_MAX {
            return Err(Rejection::BadToken { why: "too long" });
        }
        let mut parts = text.split('.');
        let (Some(header_text), Some(payload_text), Some(signature_text), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        if header_text.len() > HEADER_BYTES_MAX || signature_text.len() > SIGNATURE_BYTES_MAX {
            return Err(Rejection::BadToken { why: "too long" });
        }
        let signature = decode(signature_text).filter(|bytes| !bytes.is_empty());
        let signature = signature.ok_or_else(malformed)?;
        let header = Header::read(&decode(header_text).ok_or_else(malformed)?)?;
        Ok(Compact { header_text, payload_text, header, signature, whole: text })
    }

    /// What is signed of a token that brings its payload along.
    pub(super) fn message(&self) -> &'a [u8] {
        let len = self.header_text.len() + 1 + self.payload_text.len();
        self.whole.as_bytes().get(..len).unwrap_or_default()
    }
}

impl Header {
    fn read(json: &[u8]) -> Result<Header, Rejection> {
        let why = "its header is not one JSON object with each key once";
        let fields: Object =
            serde_json::from_slice(json).map_err(|_| Rejection::BadToken { why })?;
        // What is critical must be understood, and we understand nothing of the kind.
        if fields.get("crit").is_some() {
            return Err(Rejection::BadToken { why: "it asks for an extension (`crit`)" });
        }
        if fields.get("b64").is_some_and(|value| *value != Value::Bool(true)) {
            return Err(Rejection::BadToken { why: "its payload is not in base64 (`b64`)" });
        }
        let algorithm =
            fields.text("alg").ok_or(Rejection::BadToken { why: "it names no algorithm" })?;
        let algorithm = algorithm.to_owned();
        let kid = match fields.get("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.clone()),
            Some(_) => return Err(Rejection::BadToken { why: "its `kid` is no text" }),
        };
        Ok(Header { algorithm, kid, fields })
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.text(name)
    }

    /// The one of these that the token names.
    pub(super) fn is_one_of(&self, algorithms: &[JwsAlgorithm]) -> Option<JwsAlgorithm> {
        algorithms.iter().copied().find(|algorithm| algorithm.name() == self.algorithm)
    }
}

/// Base64 for URLs without padding.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// A JSON object with each key once: parsers disagree about which of two counts.
pub(super) struct Object(BTreeMap<String, Value>);

impl Object {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Object;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Object, M::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.insert(name, value).is_some() {
                        return Err(M::Error::custom("a repeated key"));
                    }
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Once)
    }
}
