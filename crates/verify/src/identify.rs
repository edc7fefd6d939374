//! What an event is: its identity, type, object and version.

use std::borrow::Cow;

use aws_lc_rs::rand;
use jiff::Timestamp;

use crate::batch::{self, Item};
use crate::malformed::Malformed;
use crate::payload::{Document, Paths, Seen, Unpacked, Values, unpack};
use crate::provider::{Field, Identity, Payload, Provider, Scheme, TypeRule, Unit, Version};
use crate::request::Request;
use crate::verify::is_present;
use crate::{digest, xml};

/// The longest identity, type or object, in bytes.
pub const VALUE_BYTES_MAX: usize = 512;

/// What is said of a longer one.
const TOO_LONG: &str = "longer than 512 bytes";
const _: () = assert!(VALUE_BYTES_MAX == 512, "what is said of a longer one must follow");

/// The type of an event whose provider names none.
pub(crate) const UNKNOWN_TYPE: &str = "unknown";

/// How far an identity can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The signature covers it.
    Signed,
    /// It was only sent beside what is signed, or the signature leaves open where it ends.
    Transport,
    /// It was computed from the content, or made up where nothing names the event.
    Digest,
    /// Nothing was verified: the request was kept for looking at it.
    Unverified,
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

impl Event<'_> {
    fn into_owned<'b>(self) -> Event<'b> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Event {
            id: owned(self.id),
            trust: self.trust,
            event_type: owned(self.event_type),
            object: self.object.map(owned),
            version: self.version,
        }
    }
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
///
/// Of a request that carries several, this is the first; [`events`] reads them all.
pub fn identify<'a>(provider: &Provider, request: &Request<'a>) -> Result<Event<'a>, Malformed> {
    if is_plain(provider) {
        return plain(provider, request);
    }
    let first = events(provider, request)?.into_iter().next();
    first.map(|found| found.event).ok_or_else(|| no_identity(provider))
}

/// One event of a request, and where in it the event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// What it says it is about.
    pub event: Event<'a>,
    /// The event alone as the provider wrote it; the whole body where the request is one event.
    pub bytes: Cow<'a, [u8]>,
    /// Its number in the batch, from 0; none where the request is one event.
    pub item: Option<usize>,
}

impl Found<'_> {
    /// What is compared to tell a repeat of this event from a conflict, as
    /// [`content_digest`](crate::content_digest()) does for a whole request. `request` is the one
    /// that this was found in.
    pub fn content(&self, provider: &Provider, request: &Request<'_>) -> [u8; 32] {
        match self.item {
            Some(_) => digest::item_content(provider, &self.bytes),
            None => digest::content_digest(provider, request),
        }
    }

    /// What must not come in again under another identity, as
    /// [`guard_digest`](crate::guard_digest()) says; none where the identity is signed.
    pub fn guard(&self, provider: &Provider, request: &Request<'_>) -> Option<[u8; 32]> {
        self.guard_or(provider, request, || self.content(provider, request))
    }

    /// Both for whoever has the SHA-256 of [`bytes`](Self::bytes): where the content is just that,
    /// nothing is hashed again.
    pub fn content_and_guard(
        &self,
        provider: &Provider,
        request: &Request<'_>,
        of_bytes: [u8; 32],
    ) -> ([u8; 32], Option<[u8; 32]>) {
        let is_bytes = match self.item {
            Some(_) => provider.volatile.is_empty(),
            None => provider.content_is_body(),
        };
        let content = match is_bytes {
            true => of_bytes,
            false => self.content(provider, request),
        };
        (content, self.guard_or(provider, request, || content))
    }

    fn guard_or(
        &self,
        provider: &Provider,
        request: &Request<'_>,
        content: impl FnOnce() -> [u8; 32],
    ) -> Option<[u8; 32]> {
        let signed = || digest::signed_digest(provider, request);
        match (self.event.trust, self.item) {
            (Trust::Signed, _) => None,
            (_, Some(number)) => {
                digest::item_guard(provider, request, number, &self.bytes, content)
            }
            (_, None) => digest::guard_of(provider, signed, content),
        }
    }
}

/// Reads every event of a request that was verified before, in their order. None for a batch
/// that is empty.
///
/// ```
/// use oncebox_verify::{Request, catalogue, events};
///
/// let quickbooks = catalogue::find("quickbooks").unwrap();
/// let body = br#"[{"id":"1","type":"qbo.invoice.created.v1"},
///                 {"id":"2","type":"qbo.invoice.updated.v1"}]"#;
/// let headers = http::HeaderMap::new();
/// let request = Request { method: "POST", url: "/in/quickbooks", headers: &headers, body };
///
/// let found = events(quickbooks, &request)?;
/// assert_eq!(found.len(), 2);
/// assert_eq!(found[1].event.id, "2");
/// assert_eq!(found[1].bytes.as_ref(), br#"{"id":"2","type":"qbo.invoice.updated.v1"}"#);
/// # Ok::<(), oncebox_verify::Malformed>(())
/// ```
pub fn events<'a>(provider: &Provider, request: &Request<'a>) -> Result<Vec<Found<'a>>, Malformed> {
    if is_plain(provider) {
        let event = plain(provider, request)?;
        return Ok(vec![Found { event, bytes: Cow::Borrowed(request.body), item: None }]);
    }
    let copy = match unpack(provider, request)? {
        Unpacked::AsIs(document) => {
            let read = read_all(provider, request, document)?.into_iter().enumerate();
            let found = read.map(|(number, Read { event, item })| Found {
                event,
                bytes: Cow::Borrowed(item.map_or(request.body, str::as_bytes)),
                item: item.map(|_| number),
            });
            return Ok(found.collect());
        }
        Unpacked::Json(copy) => copy,
        Unpacked::Xml(copy) => copy.into_bytes(),
    };
    let document = match provider.payload {
        Payload::FormXml(_) => {
            Document::Xml(std::str::from_utf8(&copy).map_err(|_| Malformed::NotUtf8)?)
        }
        _ => Document::Json(&copy),
    };
    // What was read from a copy is copied in turn.
    let read = read_all(provider, request, document)?.into_iter().enumerate();
    let found = read.map(|(number, Read { event, item })| Found {
        event: event.into_owned(),
        bytes: match item {
            Some(item) => Cow::Owned(item.as_bytes().to_vec()),
            None => Cow::Borrowed(request.body),
        },
        item: item.map(|_| number),
    });
    Ok(found.collect())
}

/// Whether every request is one event, and the body is it.
fn is_plain(provider: &Provider) -> bool {
    provider.payload == Payload::Body && provider.batches.is_empty()
}

fn plain<'a>(provider: &Provider, request: &Request<'a>) -> Result<Event<'a>, Malformed> {
    let document = match request.is_form() {
        true => Document::Form,
        false => Document::Json(request.body),
    };
    let values = Values::read(request, document, &Paths::new(provider))?;
    Reader::new(provider, request).event(&values, None)
}

/// An event, and the text of the item it was read from.
struct Read<'d> {
    event: Event<'d>,
    item: Option<&'d str>,
}

fn read_all<'d>(
    provider: &Provider,
    request: &Request<'d>,
    document: Document<'d>,
) -> Result<Vec<Read<'d>>, Malformed> {
    let reader = Reader::new(provider, request);
    let paths = Paths::new(provider);
    let json = match document {
        Document::Xml(text) => return read_xml(&reader, text, &paths),
        Document::Json(json) => Some(json),
        Document::Form => None,
    };
    // A form whose fields can be renamed under one signature must not lose its batch and pass.
    if json.is_none() && !provider.batches.is_empty() {
        return Err(no_identity(provider));
    }
    let mut values = Values::read(request, document, &paths)?;
    let items = json.map(|json| batch::items(provider, json)).transpose()?.flatten();
    let Some(items) = items else {
        if let Some(json) = json {
            values.go_to(json, &paths)?;
        }
        return Ok(vec![Read { event: reader.event(&values, None)?, item: None }]);
    };
    let mut read = Vec::with_capacity(items.len());
    let mut inside = None;
    for Item { outer, item, list } in items {
        let place = outer.map(|outer| outer.written().as_ptr());
        if place != inside {
            values.go_into(outer.map(|outer| outer.written().as_bytes()), &paths)?;
            inside = place;
        }
        values.list = list;
        let item = item.written();
        values.go_to(item.as_bytes(), &paths)?;
        read.push(Read { event: reader.event(&values, Some(item))?, item: Some(item) });
    }
    Ok(read)
}

fn read_xml<'d>(
    reader: &Reader<'_, 'd>,
    text: &'d str,
    paths: &Paths<'_>,
) -> Result<Vec<Read<'d>>, Malformed> {
    let document = xml::parse(text)?;
    let mut values = Values::read_xml(&reader.request, document.root(), paths)?;
    let Some(batch) = reader.provider.batches.first() else {
        values.go_to_xml(document.root_element(), paths)?;
        return Ok(vec![Read { event: reader.event(&values, None)?, item: None }]);
    };
    let elements = xml::elements(document.root(), &batch.items)?;
    let elements = elements.ok_or_else(|| no_identity(reader.provider))?;
    let read = elements.into_iter().map(|element| {
        let item = &text[element.range()];
        values.go_to_xml(element, paths)?;
        Ok(Read { event: reader.event(&values, Some(item))?, item: Some(item) })
    });
    read.collect()
}

/// What stays the same for all events of a request.
struct Reader<'p, 'a> {
    provider: &'p Provider,
    request: Request<'a>,
    /// The schemes whose proof the request carries.
    proofs: Vec<&'p Scheme>,
}

impl<'p, 'a> Reader<'p, 'a> {
    fn new(provider: &'p Provider, request: &Request<'a>) -> Reader<'p, 'a> {
        let present = |scheme: &&Scheme| is_present(scheme, request);
        let proofs = provider.schemes.iter().filter(present).collect();
        Reader { provider, request: *request, proofs }
    }

    fn event(&self, values: &Values<'a, '_>, item: Option<&str>) -> Result<Event<'a>, Malformed> {
        let (id, trust) = self.identity(values, item)?;
        let event_type = match first_type(&self.provider.event_type, values)? {
            Some(event_type) => check("event type", event_type)?,
            None => Cow::Borrowed(UNKNOWN_TYPE),
        };
        let mut object = None;
        for field in self.provider.object.iter() {
            object = values.text(field)?.filter(|text| !text.is_empty());
            if object.is_some() {
                break;
            }
        }
        let object = object.map(|object| check("object id", object)).transpose()?;
        let mut version = None;
        for rule in self.provider.version.iter() {
            version = values.text(&rule.field)?.and_then(|text| number(rule, &text));
            if version.is_some() {
                break;
            }
        }
        Ok(Event { id, trust, event_type, object, version })
    }

    fn identity(
        &self,
        values: &Values<'a, '_>,
        item: Option<&str>,
    ) -> Result<(Cow<'a, str>, Trust), Malformed> {
        const WHAT: &str = "event id";
        let one = |field: &Field| match values.find(field)? {
            Some(Seen::Text(text)) => check(WHAT, text).map(Some),
            Some(Seen::Other) => Err(Malformed::BadValue { what: WHAT, why: "no text or number" }),
            Some(Seen::Null) | None => Ok(None),
        };
        for candidate in self.provider.identity.iter() {
            match candidate {
                Identity::Field(field) if !self.is_believable(field) => {}
                Identity::Field(field) => {
                    if let Some(id) = one(field)? {
                        return Ok((id, self.trust(std::slice::from_ref(field))));
                    }
                }
                Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
                    let parts: Vec<Option<Cow<'_, str>>> =
                        fields.iter().map(one).collect::<Result<_, _>>()?;
                    let parts: Option<Vec<Cow<'_, str>>> = parts.into_iter().collect();
                    let Some(mut parts) = parts else { continue };
                    let mut trust = self.trust(fields);
                    if let Identity::JoinedDigest(_) = candidate {
                        parts.push(Cow::Owned(hex::encode(self.content(item))));
                        trust = Trust::Digest;
                    }
                    return Ok((check(WHAT, Cow::Owned(parts.join(":")))?, trust));
                }
                Identity::Digest => {
                    let digest = hex::encode(self.content(item));
                    return Ok((Cow::Owned(format!("sha256:{digest}")), Trust::Digest));
                }
                Identity::Each => {
                    let mut bytes = [0; 16];
                    rand::fill(&mut bytes).map_err(|_| no_identity(self.provider))?;
                    return Ok((Cow::Owned(format!("each:{}", hex::encode(bytes))), Trust::Digest));
                }
            }
        }
        Err(no_identity(self.provider))
    }

    fn content(&self, item: Option<&str>) -> [u8; 32] {
        match item {
            Some(item) => digest::item_content(self.provider, item.as_bytes()),
            None => digest::content_digest(self.provider, &self.request),
        }
    }

    /// A field that some scheme signs is believed only beside that scheme's signature.
    /// Otherwise an id under the names of one family could be added to a request that is
    /// signed under those of another, and let it in again.
    fn is_believable(&self, field: &Field) -> bool {
        self.proofs.is_empty()
            || self.proofs.iter().any(|scheme| scheme.covers(field))
            || !self.provider.schemes.iter().any(|scheme| scheme.covers(field))
    }

    /// Signed, if every proof the request carries covers every field. Which of them was
    /// believed depends on the secrets, so the weakest counts.
    fn trust(&self, fields: &[Field]) -> Trust {
        let covers = |scheme: &Scheme| fields.iter().all(|field| scheme.covers(field));
        // Without any proof nothing was verified; then the preferred scheme is meant.
        let signed = match self.proofs.as_slice() {
            [] => self.provider.schemes.first().is_some_and(covers),
            proofs => proofs.iter().copied().all(covers),
        };
        if signed { Trust::Signed } else { Trust::Transport }
    }
}

fn no_identity(provider: &Provider) -> Malformed {
    Malformed::NoIdentity { looked_for: describe(&provider.identity) }
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
        TOO_LONG
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
        // GitLab writes `2026-01-02 03:04:05 UTC`, WooCommerce no zone at all, and means UTC.
        let utc = || format!("{}Z", text.strip_suffix(" UTC").unwrap_or(text));
        let time: Option<Timestamp> = text.parse().ok().or_else(|| utc().parse().ok());
        Some(time?.as_millisecond())
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
            Identity::Each => "nothing".to_owned(),
        })
        .collect();
    names.join(", ")
}
