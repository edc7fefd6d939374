//! What an event is: its identity, type, object and version.

use std::borrow::Cow;

use http::HeaderMap;
use jiff::Timestamp;

use crate::digest::content_digest;
use crate::look::{Raw, look};
use crate::malformed::Malformed;
use crate::provider::{Field, Identity, Payload, Provider, Scheme, TypeRule, Unit, Version};
use crate::request::Request;
use crate::verify::is_present;

/// The longest identity, type or object.
pub(crate) const VALUE_BYTES_MAX: usize = 512;

/// The type of an event whose provider names none.
pub(crate) const UNKNOWN_TYPE: &str = "unknown";

/// How far an identity can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The signature covers it.
    Signed,
    /// It was only sent beside what is signed, or the signature leaves open where it ends.
    Transport,
    /// It was computed from the content.
    Digest,
}

/// What a verified request says it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// What makes it the same event when it comes again.
    pub id: Cow<'a, str>,
    /// How far the identity can be trusted.
    pub trust: Trust,
    /// Its type; `unknown` where the request names none.
    pub event_type: Cow<'a, str>,
    /// The business object it is about.
    pub object: Option<Cow<'a, str>>,
    /// The ordering value of the object; times are milliseconds.
    pub version: Option<i64>,
}

/// Reads the identity of a request that was verified before.
///
/// ```
/// use oncebox_verify::{Request, Trust, catalogue, identify};
///
/// let stripe = catalogue::find("stripe").unwrap();
/// let body = br#"{"id":"evt_1","type":"invoice.paid","created":1760000000,
///                 "data":{"object":{"id":"in_1"}}}"#;
/// let headers = http::HeaderMap::new();
/// let request = Request { method: "POST", url: "/in/stripe", headers: &headers, body };
///
/// let event = identify(stripe, &request)?;
/// assert_eq!((event.id.as_ref(), event.trust), ("evt_1", Trust::Signed));
/// assert_eq!(event.event_type, "invoice.paid");
/// assert_eq!(event.object.as_deref(), Some("in_1"));
/// assert_eq!(event.version, Some(1_760_000_000_000));
/// # Ok::<(), oncebox_verify::Malformed>(())
/// ```
pub fn identify<'a>(provider: &Provider, request: &Request<'a>) -> Result<Event<'a>, Malformed> {
    let values = Values::read(provider, request)?;
    let (id, trust) = identity(provider, request, &values)?;
    let event_type = match first_type(&provider.event_type, &values)? {
        Some(event_type) => check("event type", event_type)?,
        None => Cow::Borrowed(UNKNOWN_TYPE),
    };
    let mut object = None;
    for field in provider.object.iter() {
        object = values.text(field)?.filter(|text| !text.is_empty());
        if object.is_some() {
            break;
        }
    }
    let object = object.map(|object| check("object id", object)).transpose()?;
    let mut version = None;
    for rule in provider.version.iter() {
        version = values.text(&rule.field)?.and_then(|text| number(rule, &text));
        if version.is_some() {
            break;
        }
    }
    Ok(Event { id, trust, event_type, object, version })
}

/// The values of one request that the entry asks for, read once.
struct Values<'a, 'p> {
    headers: &'a HeaderMap,
    json: Vec<(&'p str, Option<Found<'a>>)>,
    form: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

#[derive(Clone)]
enum Found<'a> {
    Text(Cow<'a, str>),
    Null,
    /// A boolean, an object or an array: never an id.
    Other,
}

impl<'a> Found<'a> {
    fn new(raw: Raw<'a>) -> Found<'a> {
        match raw.text() {
            Some(text) => Found::Text(text),
            None if raw.is_null() => Found::Null,
            None => Found::Other,
        }
    }

    fn into_owned(self) -> Found<'static> {
        match self {
            Found::Text(text) => Found::Text(Cow::Owned(text.into_owned())),
            Found::Null => Found::Null,
            Found::Other => Found::Other,
        }
    }
}

impl<'a, 'p> Values<'a, 'p> {
    fn read(provider: &'p Provider, request: &Request<'a>) -> Result<Values<'a, 'p>, Malformed> {
        let pointers = pointers(provider);
        let is_form = request.is_form();
        let form: Vec<_> =
            if is_form { form_urlencoded::parse(request.body).collect() } else { Vec::new() };
        let mut values = Values { headers: request.headers, json: Vec::new(), form };
        if pointers.is_empty() {
            return Ok(values);
        }
        let form_json = match provider.payload {
            Payload::FormJson(field) => Some(field),
            _ => None,
        };
        let payload = match (form_json, is_form) {
            (_, false) => {
                let found = look(request.body, &pointers)?.into_iter();
                let found = found.map(|raw| raw.map(Found::new));
                values.json = pointers.into_iter().zip(found).collect();
                return Ok(values);
            }
            (Some(field), true) => values.form_text(field)?,
            (None, true) => None,
        };
        if let Some(payload) = payload {
            // The JSON was unescaped into a copy, so what it holds is copied too.
            let found = look(payload.as_bytes(), &pointers)?.into_iter();
            let found = found.map(|raw| raw.map(|raw| Found::new(raw).into_owned()));
            values.json = pointers.into_iter().zip(found).collect();
        }
        Ok(values)
    }

    fn find(&self, field: &Field) -> Result<Option<Found<'a>>, Malformed> {
        match field {
            Field::Json(pointer) => {
                let found = self.json.iter().find(|(known, _)| known == pointer);
                Ok(found.and_then(|(_, found)| found.clone()))
            }
            Field::Header(name) => {
                let mut values = self.headers.get_all(name.as_ref()).iter();
                match (values.next(), values.next()) {
                    (Some(_), Some(_)) => Err(Malformed::RepeatedHeader { name: name.clone() }),
                    (Some(value), None) => Ok(Some(match value.to_str() {
                        Ok("") => Found::Null,
                        Ok(text) => Found::Text(Cow::Borrowed(text)),
                        Err(_) => Found::Other,
                    })),
                    (None, _) => Ok(None),
                }
            }
            Field::Form(name) => Ok(self.form_text(name)?.map(Found::Text)),
            Field::Item(_)
            | Field::Outer(_)
            | Field::Within(..)
            | Field::KeyBeside(_)
            | Field::Xml(_)
            | Field::Query(_) => Ok(None),
        }
    }

    fn text(&self, field: &Field) -> Result<Option<Cow<'a, str>>, Malformed> {
        Ok(match self.find(field)? {
            Some(Found::Text(text)) => Some(text),
            Some(Found::Null | Found::Other) | None => None,
        })
    }

    fn form_text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Malformed> {
        let mut values = self.form.iter().filter(|(known, _)| known == name);
        match (values.next(), values.next()) {
            (Some(_), Some(_)) => Err(Malformed::DuplicateKey { key: name.to_owned() }),
            (value, _) => Ok(value.map(|(_, value)| value.clone())),
        }
    }
}

/// Every JSON pointer the entry reads.
fn pointers(provider: &Provider) -> Vec<&str> {
    let identity = provider.identity.iter().flat_map(|identity| match identity {
        Identity::Field(field) => std::slice::from_ref(field),
        Identity::Joined(fields) | Identity::JoinedDigest(fields) => fields.as_ref(),
        Identity::Digest => &[],
    });
    let types = provider.event_type.iter().flat_map(|rule| [Some(&rule.first), rule.then.as_ref()]);
    let versions = provider.version.iter().map(|version| &version.field);
    let fields = identity.chain(types.flatten()).chain(provider.object.iter()).chain(versions);
    let mut pointers = Vec::with_capacity(8);
    for field in fields {
        if let Field::Json(pointer) = field
            && !pointers.contains(&pointer.as_ref())
        {
            pointers.push(pointer.as_ref());
        }
    }
    pointers
}

fn identity<'a>(
    provider: &Provider,
    request: &Request<'a>,
    values: &Values<'a, '_>,
) -> Result<(Cow<'a, str>, Trust), Malformed> {
    const WHAT: &str = "event id";
    let one = |field: &Field| match values.find(field)? {
        Some(Found::Text(text)) => check(WHAT, text).map(Some),
        Some(Found::Other) => Err(Malformed::BadValue { what: WHAT, why: "no text or number" }),
        Some(Found::Null) | None => Ok(None),
    };
    let proofs: Vec<&Scheme> =
        provider.schemes.iter().filter(|scheme| is_present(scheme, request)).collect();
    for candidate in provider.identity.iter() {
        match candidate {
            Identity::Field(field) if !is_believable(provider, &proofs, field) => {}
            Identity::Field(field) => {
                if let Some(id) = one(field)? {
                    return Ok((id, trust(provider, &proofs, std::slice::from_ref(field))));
                }
            }
            Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
                let parts: Vec<Option<Cow<'_, str>>> =
                    fields.iter().map(one).collect::<Result<_, _>>()?;
                let parts: Option<Vec<Cow<'_, str>>> = parts.into_iter().collect();
                if let Some(parts) = parts {
                    let id = check(WHAT, Cow::Owned(parts.join(":")))?;
                    return Ok((id, trust(provider, &proofs, fields)));
                }
            }
            Identity::Digest => {
                let digest = hex::encode(content_digest(provider, request));
                return Ok((Cow::Owned(format!("sha256:{digest}")), Trust::Digest));
            }
        }
    }
    Err(Malformed::NoIdentity { looked_for: describe(&provider.identity) })
}

/// A field that some scheme signs is believed only beside that scheme's signature.
/// Otherwise an id under the names of one family could be added to a request that is
/// signed under those of another, and let it in again.
fn is_believable(provider: &Provider, proofs: &[&Scheme], field: &Field) -> bool {
    proofs.is_empty()
        || proofs.iter().any(|scheme| scheme.covers(field))
        || !provider.schemes.iter().any(|scheme| scheme.covers(field))
}

/// Signed, if every proof the request carries covers every field. Which of them was
/// believed depends on the secrets, so the weakest counts.
fn trust(provider: &Provider, proofs: &[&Scheme], fields: &[Field]) -> Trust {
    let covers = |scheme: &Scheme| fields.iter().all(|field| scheme.covers(field));
    // Without any proof nothing was verified; then the preferred scheme is meant.
    let signed = match proofs {
        [] => provider.schemes.first().is_some_and(covers),
        proofs => proofs.iter().copied().all(covers),
    };
    if signed { Trust::Signed } else { Trust::Transport }
}

fn first_type<'a>(
    rules: &[TypeRule],
    values: &Values<'a, '_>,
) -> Result<Option<Cow<'a, str>>, Malformed> {
    for rule in rules {
        let Some(first) = values.text(&rule.first)?.filter(|text| !text.is_empty()) else {
            continue;
        };
        let then = match &rule.then {
            Some(field) => values.text(field)?.filter(|text| !text.is_empty()),
            None => None,
        };
        return Ok(Some(match then {
            Some(then) => Cow::Owned(format!("{}{first}.{then}", rule.text)),
            None if rule.text.is_empty() => first,
            None => Cow::Owned(format!("{}{first}", rule.text)),
        }));
    }
    Ok(None)
}

/// Refuses what cannot be a key in a database, a header and a log line alike.
fn check<'a>(what: &'static str, text: Cow<'a, str>) -> Result<Cow<'a, str>, Malformed> {
    let why = if text.is_empty() {
        "empty"
    } else if text.len() > VALUE_BYTES_MAX {
        "longer than 512 bytes"
    } else if text.chars().any(char::is_control) {
        "not free of control characters"
    } else {
        return Ok(text);
    };
    Err(Malformed::BadValue { what, why })
}

/// Reads an ordering value; none rather than a wrong one.
fn number(rule: &Version, text: &str) -> Option<i64> {
    let written_as_time = || {
        // GitLab writes `2026-01-02 03:04:05 UTC`.
        let utc = text.strip_suffix(" UTC").map(|time| format!("{time}Z"));
        let time: Timestamp = utc.as_deref().unwrap_or(text).parse().ok()?;
        Some(time.as_millisecond())
    };
    match rule.unit {
        Unit::Seconds | Unit::Iso8601 => milliseconds(text).or_else(written_as_time),
        Unit::Milliseconds | Unit::Plain => text.parse().ok().or_else(written_as_time),
    }
}

/// Seconds with an optional fraction, in milliseconds, without passing through a float.
fn milliseconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) || whole.starts_with(['-', '+']) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let digits = fraction.bytes().chain(*b"000").take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    whole.checked_mul(1000)?.checked_add(thousandths)
}

fn describe(identity: &[Identity]) -> String {
    let name = |field: &Field| match field {
        Field::Json(pointer) => format!("`{pointer}`"),
        Field::Header(name) => format!("header `{name}`"),
        Field::Form(name) => format!("form field `{name}`"),
        Field::Query(name) => format!("query parameter `{name}`"),
        Field::Item(pointer) => format!("`{pointer}` of the item"),
        Field::Outer(pointer) => format!("`{pointer}` around the item"),
        Field::Within(outer, inner) => format!("`{inner}` within `{outer}`"),
        Field::KeyBeside(_) => "a key".to_owned(),
        Field::Xml(path) => format!("element `{path}`"),
    };
    let names: Vec<String> = identity
        .iter()
        .map(|identity| match identity {
            Identity::Field(field) => name(field),
            Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
                fields.iter().map(name).collect::<Vec<_>>().join(" with ")
            }
            Identity::Digest => "the digest".to_owned(),
        })
        .collect();
    names.join(", ")
}
