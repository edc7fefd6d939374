//! The generic `hmac` and `token` providers, made from settings.

use std::borrow::Cow;

use http::HeaderName;
use serde::{Deserialize, Serialize};

use crate::catalogue::generic;
use crate::provider::{
    Algorithm, Encoding, KeyForm, Part, Place, Provider, Scheme, Signature, Stamp, Text,
    TimeFormat, Token, TokenKind, TokenPlace,
};

mod fields;

use fields::set_fields;
pub use fields::with_fields;

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
    ///
    /// ```
    /// use oncebox_verify::custom::HmacSettings;
    ///
    /// let settings = HmacSettings {
    ///     timestamp_header: Some("X-Webhook-Timestamp".to_owned()),
    ///     ..HmacSettings::default()
    /// };
    /// assert!(settings.provider()?.signs_timestamp());
    ///
    /// let typo = HmacSettings { algorithm: "md5".to_owned(), ..settings };
    /// let error = typo.provider().unwrap_err();
    /// assert_eq!(error.to_string(), "algorithm: `md5` is not known");
    /// # Ok::<(), oncebox_verify::custom::SettingsError>(())
    /// ```
    pub fn provider(&self) -> Result<Provider, SettingsError> {
        let hmac = Signature {
            algorithm: choose("algorithm", &self.algorithm, ALGORITHMS)?,
            place: self.signature_place()?,
            prefix: Cow::Owned(self.signature_prefix.clone()),
            separator: match self.signature_label {
                Some(_) => None,
                None => self.separator()?,
            },
            encoding: choose("encoding", &self.encoding, ENCODINGS)?,
            timestamp: self.stamp()?,
            signed: Cow::Owned(self.parts()?),
            key: choose("secret_encoding", &self.secret_encoding, KEY_FORMS)?.clone(),
        };
        let mut provider = generic::HMAC.clone();
        provider.schemes = Cow::Owned(vec![Scheme::Signature(hmac)]);
        let object = (&self.object_id, &self.version);
        set_fields(&mut provider, &self.event_id, &self.event_type, object)?;
        Ok(provider)
    }

    fn signature_place(&self) -> Result<Place, SettingsError> {
        let header = header_name("signature_header", &self.signature_header)?;
        let Some(label) = &self.signature_label else { return Ok(Place::Header(header)) };
        let label = label_text("signature_label", label)?;
        Ok(Place::Label { header, label, separators: self.separators()? })
    }

    fn separators(&self) -> Result<Text, SettingsError> {
        Ok(Cow::Owned(self.separator()?.unwrap_or(',').to_string()))
    }

    fn separator(&self) -> Result<Option<char>, SettingsError> {
        let Some(text) = &self.signature_separator else { return Ok(None) };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(separator), None) if separator.is_ascii() && separator != '=' => {
                Ok(Some(separator))
            }
            _ => Err(wrong(
                "signature_separator",
                format!("`{text}` is not one character"),
                "write the one character between two signatures, such as \",\"",
            )),
        }
    }

    fn stamp(&self) -> Result<Option<Stamp>, SettingsError> {
        const DAY_SECS: u32 = 86_400;
        let place = match (&self.timestamp_header, &self.timestamp_label) {
            (None, None) => return Ok(None),
            (Some(header), None) => Place::Header(header_name("timestamp_header", header)?),
            (header, Some(label)) => Place::Label {
                header: match header {
                    Some(header) => header_name("timestamp_header", header)?,
                    None => header_name("signature_header", &self.signature_header)?,
                },
                label: label_text("timestamp_label", label)?,
                separators: self.separators()?,
            },
        };
        if !(1..=DAY_SECS).contains(&self.tolerance) {
            return Err(wrong(
                "tolerance",
                format!("{} is not between 1 and {DAY_SECS} seconds", self.tolerance),
                "300 is usual: enough for slow networks, short enough against replays",
            ));
        }
        let format = choose("timestamp_format", &self.timestamp_format, TIME_FORMATS)?;
        if let (Place::Label { .. }, TimeFormat::HttpDate) = (&place, format) {
            return Err(wrong(
                "timestamp_format",
                "an HTTP date does not fit into a list, for it holds a comma".to_owned(),
                "give it a header of its own, or use another format",
            ));
        }
        Ok(Some(Stamp { place, format, tolerance_secs: Some(self.tolerance) }))
    }

    fn parts(&self) -> Result<Vec<Part>, SettingsError> {
        const FIELD: &str = "signed";
        let stamped = self.timestamp_header.is_some() || self.timestamp_label.is_some();
        let usual = if stamped { "{timestamp}.{body}" } else { "{body}" };
        let parts = template(self.signed.as_deref().unwrap_or(usual))?;
        if !parts.contains(&Part::Body) {
            let hint = "add {body}, or anyone could change the body of a captured request";
            return Err(wrong(FIELD, "the body would not be signed".to_owned(), hint));
        }
        match (stamped, parts.contains(&Part::Timestamp)) {
            (true, false) => Err(wrong(
                FIELD,
                "the timestamp would not be signed".to_owned(),
                "add {timestamp}, or remove timestamp_header and timestamp_label: a time that \
                 anyone can change proves nothing",
            )),
            (false, true) => Err(wrong(
                FIELD,
                "{timestamp} has no place to come from".to_owned(),
                "set timestamp_header, or timestamp_label",
            )),
            _ => Ok(parts),
        }
    }
}

impl TokenSettings {
    /// The provider these settings describe.
    ///
    /// ```
    /// use oncebox_verify::custom::TokenSettings;
    ///
    /// let settings = TokenSettings {
    ///     header: "Authorization".to_owned(),
    ///     scheme: "basic".to_owned(),
    ///     ..TokenSettings::default()
    /// };
    /// let provider = settings.provider()?;
    /// assert!(provider.credential_headers().eq(["Authorization"]));
    /// # Ok::<(), oncebox_verify::custom::SettingsError>(())
    /// ```
    pub fn provider(&self) -> Result<Provider, SettingsError> {
        let token = Token {
            place: TokenPlace::Header(header_name("header", &self.header)?),
            kind: choose("scheme", &self.scheme, TOKEN_KINDS)?,
            refuse_whsec: false,
        };
        let mut provider = generic::TOKEN.clone();
        provider.schemes = Cow::Owned(vec![Scheme::Token(token)]);
        let object = (&self.object_id, &self.version);
        set_fields(&mut provider, &self.event_id, &self.event_type, object)?;
        Ok(provider)
    }
}

const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("sha256", Algorithm::HmacSha256),
    ("sha1", Algorithm::HmacSha1),
    ("sha512", Algorithm::HmacSha512),
];

// Senders we do not know write hex in either case.
const ENCODINGS: &[(&str, Encoding)] = &[
    ("hex", Encoding::HexAnyCase),
    ("base64", Encoding::Base64),
    ("base64url", Encoding::Base64Url),
];

const KEY_FORMS: &[(&str, &KeyForm)] =
    &[("text", &KeyForm::Text), ("base64", &KeyForm::Base64), ("hex", &KeyForm::Hex)];

const TIME_FORMATS: &[(&str, TimeFormat)] = &[
    ("seconds", TimeFormat::Seconds),
    ("milliseconds", TimeFormat::Milliseconds),
    ("iso8601", TimeFormat::Iso8601),
    ("http-date", TimeFormat::HttpDate),
];

const TOKEN_KINDS: &[(&str, TokenKind)] =
    &[("token", TokenKind::Plain), ("bearer", TokenKind::Bearer), ("basic", TokenKind::Basic)];

fn wrong(field: &'static str, message: String, hint: impl Into<String>) -> SettingsError {
    SettingsError { field, message, hint: hint.into() }
}

fn choose<T: Copy>(
    field: &'static str,
    given: &str,
    known: &[(&str, T)],
) -> Result<T, SettingsError> {
    let found = known.iter().find(|(name, _)| *name == given).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        wrong(field, format!("`{given}` is not known"), format!("one of {}", names.join(", ")))
    })
}

fn header_name(field: &'static str, name: &str) -> Result<Text, SettingsError> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(_) => Ok(Cow::Owned(name.to_owned())),
        Err(_) => Err(wrong(
            field,
            format!("`{name}` cannot be the name of a header"),
            "letters, digits and dashes, without a colon",
        )),
    }
}

fn label_text(field: &'static str, label: &str) -> Result<Text, SettingsError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !label.is_empty() && label.chars().all(plain) {
        return Ok(Cow::Owned(label.to_owned()));
    }
    Err(wrong(field, format!("`{label}` is no label"), "only what stands before the `=`: v1, t"))
}

/// Splits a template such as `{timestamp}.{body}` into its parts.
fn template(template: &str) -> Result<Vec<Part>, SettingsError> {
    const KNOWN: &str = "{timestamp}, {body}, {url}, {method} and {header:NAME} are known";
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        let close = rest.find('}');
        let name = close.map_or("", |close| &rest[1..close]);
        let part = match name {
            "timestamp" => Part::Timestamp,
            "body" => Part::Body,
            "url" => Part::Url,
            "method" => Part::Method,
            _ => match name.strip_prefix("header:") {
                Some(name) => Part::Header(header_name("signed", name)?),
                // A word in braces is a slip of the pen; other braces are text.
                None if is_word(name) => {
                    return Err(wrong("signed", format!("`{{{name}}}` is not known"), KNOWN));
                }
                None => {
                    text.push('{');
                    rest = &rest[1..];
                    continue;
                }
            },
        };
        if !text.is_empty() {
            parts.push(Part::Text(Cow::Owned(std::mem::take(&mut text))));
        }
        parts.push(part);
        rest = &rest[name.len() + 2..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(Cow::Owned(text)));
    }
    Ok(parts)
}

fn is_word(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_:-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(settings: &HmacSettings) -> String {
        settings.provider().unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_the_catalogue_entries() {
        let hmac = HmacSettings::default().provider().unwrap();
        assert_eq!(format!("{hmac:?}"), format!("{:?}", generic::HMAC));
        let token = TokenSettings::default().provider().unwrap();
        assert_eq!(format!("{token:?}"), format!("{:?}", generic::TOKEN));
    }

    #[test]
    fn a_template_is_text_and_placeholders() {
        let parts = template("v0:{timestamp}:{header:X-Id}{ {body}").unwrap();
        let text = |text: &'static str| Part::Text(Cow::Borrowed(text));
        let header = Part::Header(Cow::Borrowed("X-Id"));
        let expected = [text("v0:"), Part::Timestamp, text(":"), header, text("{ "), Part::Body];
        assert_eq!(parts, expected);
    }

    #[test]
    fn what_would_not_protect_is_refused() {
        let base = HmacSettings::default;
        let signed = |signed: &str| Some(signed.to_owned());
        let unsigned_body = HmacSettings { signed: signed("{url}"), ..base() };
        assert_eq!(error(&unsigned_body), "signed: the body would not be signed");
        let typo = HmacSettings { signed: signed("{timestmp}.{body}"), ..base() };
        assert_eq!(error(&typo), "signed: `{timestmp}` is not known");
        let no_place = HmacSettings { signed: signed("{timestamp}.{body}"), ..base() };
        assert_eq!(error(&no_place), "signed: {timestamp} has no place to come from");
        let timestamp_header = Some("X-Time".to_owned());
        let loose = HmacSettings {
            signed: signed("{body}"),
            timestamp_header: timestamp_header.clone(),
            ..base()
        };
        assert_eq!(error(&loose), "signed: the timestamp would not be signed");
        for tolerance in [0, 86_401] {
            let timestamp_header = timestamp_header.clone();
            let settings = HmacSettings { tolerance, timestamp_header, ..base() };
            assert!(error(&settings).starts_with("tolerance: "));
        }
    }

    #[test]
    fn fields_say_where_they_are() {
        let base = HmacSettings::default;
        let bare = HmacSettings { event_id: "id".to_owned(), ..base() };
        assert_eq!(error(&bare), "event_id: `id` does not say where the value is");
        let digest_type = HmacSettings { event_type: "digest".to_owned(), ..base() };
        assert!(error(&digest_type).starts_with("event_type: "));
        let bad_header = HmacSettings { event_id: "header:a b".to_owned(), ..base() };
        assert_eq!(error(&bad_header), "event_id: `a b` cannot be the name of a header");
    }
}
