//! The URL of a fetch: text with places for what an event says.
//!
//! An event is authentic, and what it says may still be meant to lead us elsewhere. So a value
//! keeps its place whatever it is: all but letters, digits and `-_.~` is percent-encoded, and a
//! value that some server would read as the way up (`..`) is no value for a URL.

use std::borrow::Cow;

use http::Uri;
use oncebox::delivery::Claimed;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

/// Everything that means something in a URL, and all that does not belong there.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// How often a path is decoded to see where it could lead. Servers and the proxies before them
/// each decode it once, some twice.
const DECODINGS: usize = 4;

/// What an event can put into the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The object it is about.
    Object,
    /// Its id.
    EventId,
    /// Its type.
    Type,
    /// The source it came in by.
    Source,
    /// The provider's ordering value.
    Version,
}

impl Place {
    /// Every place, in the order messages list them.
    pub const ALL: [Self; 5] =
        [Self::Object, Self::EventId, Self::Type, Self::Source, Self::Version];

    /// The word for it, as it stands in braces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::EventId => "event_id",
            Self::Type => "type",
            Self::Source => "source",
            Self::Version => "version",
        }
    }

    /// What a delivery says there; none if it says nothing.
    fn value(self, delivery: &Claimed) -> Option<Cow<'_, str>> {
        let value = match self {
            Self::Object => delivery.object.as_deref()?.into(),
            Self::EventId => delivery.event_id.as_str().into(),
            Self::Type => delivery.event_type.as_str().into(),
            Self::Source => delivery.source_name.as_str().into(),
            Self::Version => delivery.version?.to_string().into(),
        };
        Some(value).filter(|value: &Cow<'_, str>| !value.is_empty())
    }
}

/// Why a text is no URL to fetch from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// A word in braces that stands for nothing.
    #[error("`{{{0}}}` stands for nothing")]
    Unknown(String),
    /// A brace without its other half.
    #[error("a brace is open or closed alone")]
    Brace,
    /// An event would say where to go.
    #[error("a place stands before the path")]
    Host,
    /// No URL, or not one of HTTP.
    #[error("it is no http or https URL")]
    NoUrl,
    /// A user or password.
    #[error("it has a user or password in it")]
    User,
    /// A part that is never sent.
    #[error("it has a `#` in it")]
    Fragment,
    /// A path that goes up.
    #[error("its path has a part of dots only")]
    Dots,
}

impl BadTemplate {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let places = Place::ALL.map(|place| format!("{{{}}}", place.as_str())).join(", ");
        match self {
            Self::Unknown(_) => format!("known here: {places}"),
            Self::Brace => format!("braces stand around a place only: {places}"),
            Self::Host => "write scheme, host and port as they are: an event must not choose whom \
                           to ask"
                .into(),
            Self::NoUrl => {
                "write the whole URL, such as https://api.example.com/v1/invoices/{object}".into()
            }
            Self::User => "credentials go into `bearer` or `headers`".into(),
            Self::Fragment => "what follows it is never sent; remove it".into(),
            Self::Dots => "write the path it leads to".into(),
        }
    }
}

/// What an event says cannot stand in the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what the event says cannot stand in the URL: it would lead elsewhere")]
pub struct Unfit;

/// A URL with places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(Place),
}

impl Template {
    /// Reads a URL with places.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(open);
            let inside = from.strip_prefix('{').ok_or(BadTemplate::Brace)?;
            let (name, after) = inside.split_once('}').ok_or(BadTemplate::Brace)?;
            let place = Place::ALL.into_iter().find(|place| place.as_str() == name);
            let place = place.ok_or_else(|| BadTemplate::Unknown(name.to_owned()))?;
            parts.extend([Part::Text(before.to_owned()), Part::Place(place)]);
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        let template = Self { parts };
        template.check(text).map(|()| template)
    }

    fn check(&self, text: &str) -> Result<(), BadTemplate> {
        let (scheme, rest) = text.split_once("://").ok_or(BadTemplate::NoUrl)?;
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        if scheme.contains('{') || host.contains('{') {
            return Err(BadTemplate::Host);
        }
        if host.contains('@') {
            return Err(BadTemplate::User);
        }
        if text.contains('#') {
            return Err(BadTemplate::Fragment);
        }
        let plain = self.with(|_| Some("x".into())).ok_or(BadTemplate::NoUrl)?;
        let url: Uri = plain.parse().map_err(|_| BadTemplate::NoUrl)?;
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.authority().is_none() {
            return Err(BadTemplate::NoUrl);
        }
        if leads_up(url.path()) { Err(BadTemplate::Dots) } else { Ok(()) }
    }

    /// Whether an event has a say at this place.
    pub fn has(&self, place: Place) -> bool {
        self.parts.contains(&Part::Place(place))
    }

    /// Whether an event has a say at all.
    pub fn has_places(&self) -> bool {
        Place::ALL.into_iter().any(|place| self.has(place))
    }

    /// The URL for a delivery; none if its event says nothing about one of the places.
    pub fn fill(&self, delivery: &Claimed) -> Result<Option<Uri>, Unfit> {
        let Some(url) = self.with(|place| place.value(delivery)) else { return Ok(None) };
        let url: Uri = url.parse().map_err(|_| Unfit)?;
        if leads_up(url.path()) { Err(Unfit) } else { Ok(Some(url)) }
    }

    /// The URL with these values, encoded.
    fn with<'a>(&self, value: impl Fn(Place) -> Option<Cow<'a, str>>) -> Option<String> {
        let mut url = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => url.push_str(text),
                Part::Place(place) => url.extend(utf8_percent_encode(&value(*place)?, ENCODED)),
            }
        }
        Some(url)
    }
}

/// Whether some server could read a path as one that goes up: a part of dots only, however often
/// it is encoded, between slashes of any kind, with blanks or parameters behind it.
fn leads_up(path: &str) -> bool {
    let mut path: Cow<'_, [u8]> = path.as_bytes().into();
    for _ in 0..DECODINGS {
        let parts = path.split(|byte| matches!(byte, b'/' | b'\\'));
        if parts.into_iter().any(is_dots) {
            return true;
        }
        path = percent_decode(&path).collect::<Vec<u8>>().into();
    }
    false
}

fn is_dots(part: &[u8]) -> bool {
    let name = part.split(|byte| *byte == b';').next().unwrap_or_default();
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control();
    let mut letters = name.iter().filter(|byte| !is_blank(byte)).peekable();
    letters.peek().is_some() && letters.all(|byte| *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::super::tests::claimed;
    use super::*;

    const INVOICES: &str = "https://api.test/v1/invoices/{object}";

    fn filled(template: &str, object: &str) -> Result<Option<String>, Unfit> {
        let delivery = Claimed { object: Some(object.into()), ..claimed() };
        let url = Template::parse(template).unwrap().fill(&delivery)?;
        Ok(url.map(|url| url.to_string()))
    }

    #[test]
    fn every_place_has_its_value() {
        let template = "https://api.test:8443/{source}/{type}/{object}?e={event_id}&v={version}";
        let url = Template::parse(template).unwrap().fill(&claimed()).unwrap().unwrap();
        assert_eq!(url, "https://api.test:8443/stripe/invoice.paid/in_1?e=evt_1&v=7");
    }

    #[test]
    fn a_value_keeps_its_place() {
        for (object, encoded) in [
            ("in_456", "in_456"),
            ("a-b.c~d", "a-b.c~d"),
            ("a/b", "a%2Fb"),
            ("a?b=c&d", "a%3Fb%3Dc%26d"),
            ("a#b", "a%23b"),
            ("user@evil.test", "user%40evil.test"),
            ("//evil.test/", "%2F%2Fevil.test%2F"),
            ("https://evil.test", "https%3A%2F%2Fevil.test"),
            ("a\r\nX-Evil: 1", "a%0D%0AX-Evil%3A%201"),
            ("a b\0", "a%20b%00"),
            ("é\u{1f980}", "%C3%A9%F0%9F%A6%80"),
            ("{object}", "%7Bobject%7D"),
            ("100%", "100%25"),
            ("a..b", "a..b"),
        ] {
            let url = filled(INVOICES, object).unwrap().unwrap();
            assert_eq!(url, format!("https://api.test/v1/invoices/{encoded}"), "{object:?}");
        }
        let url = filled("https://api.test/v1?id={object}&x=1", "../a&b#c").unwrap().unwrap();
        assert_eq!(url, "https://api.test/v1?id=..%2Fa%26b%23c&x=1");
    }

    #[test]
    fn what_could_lead_up_is_refused() {
        let ups = [
            ".",
            "..",
            "...",
            "../x",
            "../../v1/customers",
            "a/../../b",
            "..\\..\\x",
            "%2e%2e",
            "%2E%2E%2Fx",
            "%252e%252e",
            "..;a=b/x",
            ".. /x",
            "..\0/x",
            "..\u{9}",
        ];
        for object in ups {
            assert_eq!(filled(INVOICES, object), Err(Unfit), "{object:?}");
        }
        assert_eq!(filled("https://api.test/a/.{object}/b", "."), Err(Unfit));
        // Within a longer part, dots are letters of a name.
        let url = filled("https://api.test/orders/{object}.json", "..").unwrap().unwrap();
        assert_eq!(url, "https://api.test/orders/...json");
    }

    #[test]
    fn an_event_that_says_nothing_there_has_no_url() {
        assert_eq!(filled(INVOICES, ""), Ok(None));
        let template = Template::parse("https://api.test/{object}/{version}").unwrap();
        let none = Claimed { object: None, ..claimed() };
        assert_eq!(template.fill(&none), Ok(None));
        let none = Claimed { version: None, ..claimed() };
        assert_eq!(template.fill(&none), Ok(None));
    }

    #[test]
    fn what_is_no_url_says_so() {
        for (text, error) in [
            ("https://api.test/{objct}", BadTemplate::Unknown("objct".into())),
            ("https://api.test/{}", BadTemplate::Unknown(String::new())),
            ("https://api.test/{object", BadTemplate::Brace),
            ("https://api.test/object}", BadTemplate::Brace),
            ("https://{source}.api.test/", BadTemplate::Host),
            ("https://api.test:{version}/", BadTemplate::Host),
            ("https://{object}", BadTemplate::Host),
            ("https://api.test{object}/", BadTemplate::Host),
            ("{type}://api.test/", BadTemplate::Host),
            ("ftp://api.test/{object}", BadTemplate::NoUrl),
            ("api.test/{object}", BadTemplate::NoUrl),
            ("https:///{object}", BadTemplate::NoUrl),
            ("https://me:pw@api.test/{object}", BadTemplate::User),
            ("https://api.test/{object}#x", BadTemplate::Fragment),
            ("https://api.test/v1/../{object}", BadTemplate::Dots),
            ("https://api.test/v1/%2e%2e/{object}", BadTemplate::Dots),
        ] {
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
    }
}
