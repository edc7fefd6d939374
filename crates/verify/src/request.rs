//! A request as it arrived, one to be sent, and an answer.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::provider::{Forms, Provider};

/// A request exactly as it arrived.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The absolute URL as the provider saw it, or at least the path. Few
    /// schemes sign it; Twilio's does.
    pub url: &'a str,
    /// All headers, repeated ones included.
    pub headers: &'a HeaderMap,
    /// The raw bytes of the body.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The values of a parameter of the query.
    pub(crate) fn query(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        let query = self.url.split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes());
        pairs.filter(move |(known, _)| known == name).map(|(_, value)| value)
    }

    /// The values of a field of a form body.
    pub(crate) fn form(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        let body = if self.is_form() { self.body } else { b"" };
        let pairs = form_urlencoded::parse(body);
        pairs.filter(move |(known, _)| known == name).map(|(_, value)| value)
    }

    /// The path and the query of the URL.
    pub(crate) fn path_and_query(&self) -> &'a str {
        let after_host = self.url.split_once("://").map(|(_, rest)| rest);
        let start = after_host.map_or(Some(self.url), |rest| rest.find('/').map(|at| &rest[at..]));
        start.unwrap_or("/").split('#').next().unwrap_or_default()
    }

    /// Whether the body is a form of an event of `provider`. One without any field is empty.
    pub(crate) fn is_form_of(&self, provider: &Provider) -> bool {
        match provider.forms() {
            Forms::Never => false,
            Forms::Typed => self.body.is_empty() || self.is_form(),
            Forms::Always => self.body.is_empty() || self.may_be_form(),
        }
    }

    /// Whether the body is a form, where forms are read.
    ///
    /// The content type is not signed, so it must not turn signed JSON into a form
    /// without an id, which would then pass as another event. What starts like JSON is
    /// JSON; only the rest is what its type says, and a form if it has none.
    pub(crate) fn is_form(&self) -> bool {
        let content_type = self.headers.get(http::header::CONTENT_TYPE);
        self.may_be_form() && content_type.is_none_or(is_form_type)
    }

    fn may_be_form(&self) -> bool {
        let first = self.body.iter().find(|byte| !byte.is_ascii_whitespace());
        !matches!(first, None | Some(b'{' | b'['))
    }
}

/// Headers may hold credentials and bodies anything, so only names and sizes are shown.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        formatter
            .debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

pub(crate) fn is_form_type(value: &HeaderValue) -> bool {
    let essence = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// A request to be sent, as made by [`sample`](crate::sample()) and
/// [`sign`](crate::sign()).
#[derive(Clone, Debug)]
pub struct Draft {
    /// The method.
    pub method: String,
    /// The absolute URL it goes to.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Draft {
    /// The draft as its receiver would see it.
    pub fn request(&self) -> Request<'_> {
        Request { method: &self.method, url: &self.url, headers: &self.headers, body: &self.body }
    }

    /// Sets a header; false if the name or the value cannot be one.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> bool {
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
                true
            }
            _ => false,
        }
    }
}

/// An answer to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The content type; empty where there is no body.
    pub content_type: &'static str,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}
