//! What an event is: its identity, type, object and version.

use std::borrow::Cow;

use aws_lc_rs::rand;

use crate::batch::{self, Item};
use crate::found::{Defect, Found};
use crate::malformed::Malformed;
use crate::payload::{Document, Paths, Seen, Unpacked, Values, any_document, unpack};
use crate::provider::{Field, Identity, Payload, Provider, Scheme, TypeRule};
use crate::request::Request;
use crate::verify::is_present;
use crate::{digest, xml};

mod looked_for;
mod version;

use looked_for::describe;
use version::number;

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
        let bytes = Cow::Borrowed(request.body);
        return Ok(vec![Found { event, bytes, item: None, defect: None }]);
    }
    let copy = match unpack(provider, request)? {
        Unpacked::AsIs(document) => {
            let read = read_all(provider, request, document)?.into_iter().enumerate();
            let found = read.map(|(number, Read { event, item, defect })| Found {
                event,
                bytes: Cow::Borrowed(item.map_or(request.body, str::as_bytes)),
                item: item.map(|_| number),
                defect,
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
    let found = read.map(|(number, Read { event, item, defect })| Found {
        event: event.into_owned(),
        bytes: match item {
            Some(item) => Cow::Owned(item.as_bytes().to_vec()),
            None => Cow::Borrowed(request.body),
        },
        item: item.map(|_| number),
        defect,
    });
    Ok(found.collect())
}

/// Whether every request is one event, and the body is it.
fn is_plain(provider: &Provider) -> bool {
    matches!(provider.payload, Payload::Body | Payload::Any) && provider.batches.is_empty()
}

fn plain<'a>(provider: &Provider, request: &Request<'a>) -> Result<Event<'a>, Malformed> {
    let document = match provider.payload {
        Payload::Any => any_document(request.body),
        _ if request.is_form_of(provider) => Document::Form,
        _ => Document::Json(request.body),
    };
    let values = Values::read(request, document, &Paths::new(provider))?;
    Reader::new(provider, request).event(&values, None)
}

/// An event, the text of the item it was read from, and what of that could not be read.
struct Read<'d> {
    event: Event<'d>,
    item: Option<&'d str>,
    defect: Option<Defect>,
}

impl<'d> Read<'d> {
    /// The one event of a request.
    fn whole(event: Event<'d>) -> Vec<Read<'d>> {
        vec![Read { event, item: None, defect: None }]
    }
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
        return Ok(Read::whole(reader.event(&values, None)?));
    };
    let is_alone = items.len() == 1;
    let mut read = Vec::with_capacity(items.len());
    let mut inside = None;
    let mut entered = Ok(());
    for Item { outer, item, list, is_sound } in items {
        let place = outer.map(|outer| outer.written().as_ptr());
        if place != inside {
            entered = values.go_into(outer.map(|outer| outer.written().as_bytes()), &paths);
            inside = place;
        }
        values.list = list;
        let item = item.written();
        let reached = match is_sound {
            true => entered.clone().and_then(|()| values.go_to(item.as_bytes(), &paths)),
            false => Err(Malformed::ItemNotObject),
        };
        read.push(reader.item(&values, item, reached, is_alone)?);
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
        return Ok(Read::whole(reader.event(&values, None)?));
    };
    let elements = xml::elements(document.root(), &batch.items)?;
    let elements = elements.ok_or_else(|| no_identity(reader.provider))?;
    let is_alone = elements.len() == 1;
    let read = elements.into_iter().map(|element| {
        let reached = values.go_to_xml(element, paths);
        reader.item(&values, &text[element.range()], reached, is_alone)
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
        let event_type = self.event_type(values)?;
        let (object, version) = (self.object(values)?, self.version(values)?);
        Ok(Event { id, trust, event_type, object, version })
    }

    /// One event of a batch, once its item was `reached`. What cannot be read spoils the request
    /// only where it carries no other event.
    fn item(
        &self,
        values: &Values<'a, '_>,
        item: &'a str,
        reached: Result<(), Malformed>,
        is_alone: bool,
    ) -> Result<Read<'a>, Malformed> {
        let is_readable = reached.is_ok();
        let (event, defect) = match reached.and_then(|()| self.event(values, Some(item))) {
            Ok(event) => (event, None),
            Err(malformed) if is_alone => return Err(malformed),
            Err(_) => self.defective(is_readable.then_some(values), item),
        };
        Ok(Read { event, item: Some(item), defect })
    }

    /// An event under its digest, with those of its values that can be kept, and what is missing.
    fn defective(
        &self,
        values: Option<&Values<'a, '_>>,
        item: &str,
    ) -> (Event<'a>, Option<Defect>) {
        let id = digest_id(self.content(Some(item)));
        let unknown = Cow::Borrowed(UNKNOWN_TYPE);
        let Some(values) = values else {
            let (trust, event_type) = (Trust::Digest, unknown);
            let event = Event { id, trust, event_type, object: None, version: None };
            return (event, Some(Defect::Event));
        };
        let (event_type, object) = (self.event_type(values), self.object(values));
        let defect = match (&event_type, &object) {
            _ if self.identity(values, Some(item)).is_err() => Defect::EventId,
            (Err(_), _) => Defect::EventType,
            (Ok(_), Err(_)) => Defect::ObjectId,
            // What else a reader may stumble over is the version.
            (Ok(_), Ok(_)) => Defect::Event,
        };
        let event = Event {
            id,
            trust: Trust::Digest,
            event_type: event_type.unwrap_or(unknown),
            object: object.unwrap_or_default(),
            version: self.version(values).unwrap_or_default(),
        };
        (event, Some(defect))
    }

    fn event_type(&self, values: &Values<'a, '_>) -> Result<Cow<'a, str>, Malformed> {
        match first_type(&self.provider.event_type, values)? {
            Some(event_type) => check("event type", event_type),
            None => Ok(Cow::Borrowed(UNKNOWN_TYPE)),
        }
    }

    fn object(&self, values: &Values<'a, '_>) -> Result<Option<Cow<'a, str>>, Malformed> {
        for field in self.provider.object.iter() {
            let object = values.text(field)?.filter(|text| !text.is_empty());
            if let Some(object) = object {
                return check("object id", object).map(Some);
            }
        }
        Ok(None)
    }

    fn version(&self, values: &Values<'a, '_>) -> Result<Option<i64>, Malformed> {
        for rule in self.provider.version.iter() {
            let version = values.text(&rule.field)?.and_then(|text| number(rule, &text));
            if version.is_some() {
                return Ok(version);
            }
        }
        Ok(None)
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
                    return Ok((digest_id(self.content(item)), Trust::Digest));
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

/// The identity of what has no other.
fn digest_id<'a>(content: [u8; 32]) -> Cow<'a, str> {
    Cow::Owned(format!("sha256:{}", hex::encode(content)))
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
