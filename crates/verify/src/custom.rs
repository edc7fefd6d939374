//! The generic `hmac` and `token` providers, made from settings.

use serde::{Deserialize, Serialize};

use crate::provider::Provider;

/// Settings of an `hmac` source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HmacSettings {
    /// The header that carries the signature.
    pub signature_header: String,
    /// The label of the signature, where the header is a list such as `t=1,v1=ab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_label: Option<String>,
    /// Text in front of the signature, such as `sha256=`.
    pub signature_prefix: String,
    /// The character between several signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_separator: Option<String>,
    /// `sha256`, `sha1` or `sha512`.
    pub algorithm: String,
    /// `hex`, `base64` or `base64url`.
    pub encoding: String,
    /// The header that carries the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_header: Option<String>,
    /// The label of the time, where its header is a list such as `t=1,v1=ab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_label: Option<String>,
    /// `seconds`, `milliseconds`, `iso8601` or `http-date`.
    pub timestamp_format: String,
    /// How many seconds the time may be off.
    pub tolerance: u32,
    /// What is signed: text with `{timestamp}`, `{body}`, `{url}`, `{method}` and
    /// `{header:NAME}` in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
    /// `text`, `base64` or `hex`.
    pub secret_encoding: String,
    /// Where the identity is.
    pub event_id: String,
    /// Where the type is.
    pub event_type: String,
    /// Where the id of the business object is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
    /// Where the ordering value of the object is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Settings of a `token` source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenSettings {
    /// The header that carries the token.
    pub header: String,
    /// `token`, `bearer` or `basic`.
    pub scheme: String,
    /// Where the identity is.
    pub event_id: String,
    /// Where the type is.
    pub event_type: String,
    /// Where the id of the business object is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
    /// Where the ordering value of the object is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SettingsError {
    /// The key of the setting.
    pub field: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Default for HmacSettings {
    fn default() -> HmacSettings {
        HmacSettings {
            signature_header: "X-Webhook-Signature".to_owned(),
            signature_label: None,
            signature_prefix: String::new(),
            signature_separator: None,
            algorithm: "sha256".to_owned(),
            encoding: "hex".to_owned(),
            timestamp_header: None,
            timestamp_label: None,
            timestamp_format: "seconds".to_owned(),
            tolerance: 300,
            signed: None,
            secret_encoding: "text".to_owned(),
            event_id: "/id".to_owned(),
            event_type: "/type".to_owned(),
            object_id: None,
            version: None,
        }
    }
}

impl Default for TokenSettings {
    fn default() -> TokenSettings {
        TokenSettings {
            header: "X-Webhook-Token".to_owned(),
            scheme: "token".to_owned(),
            event_id: "/id".to_owned(),
            event_type: "/type".to_owned(),
            object_id: None,
            version: None,
        }
    }
}

impl HmacSettings {
    /// The provider these settings describe.
    pub fn provider(&self) -> Result<Provider, SettingsError> {
        Ok(crate::catalogue::generic::HMAC.clone())
    }
}

impl TokenSettings {
    /// The provider these settings describe.
    pub fn provider(&self) -> Result<Provider, SettingsError> {
        Ok(crate::catalogue::generic::TOKEN.clone())
    }
}
