//! The payload of a request, and the values in it that an entry asks for.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use roxmltree::Node;

use crate::jws;
use crate::look::{Raw, key_beside, look};
use crate::malformed::Malformed;
use crate::multipart;
use crate::provider::{Field, Identity, Payload, Provider, TypeRule};
use crate::request::Request;
use crate::xml;

/// Where the event is, or the events are.
#[derive(Clone, Copy)]
pub(crate) enum Document<'a> {
    Json(&'a [u8]),
    Xml(&'a str),
    /// A form whose own fields are the event.
    Form,
}

/// A payload as it lies in the request, or as a copy where it had to be decoded.
pub(crate) enum Unpacked<'a> {
    AsIs(Document<'a>),
    Json(Vec<u8>),
    Xml(String),
}

/// Finds the payload.
pub(crate) fn unpack<'a>(
    provider: &Provider,
    request: &Request<'a>,
) -> Result<Unpacked<'a>, Malformed> {
    let is_form = request.is_form_of(provider);
    let body = match is_form {
        true => Document::Form,
        false => Document::Json(request.body),
    };
    Ok(match provider.payload {
        Payload::FormJson(field) if is_form => match form_text(request, field)? {
            Some(Cow::Borrowed(text)) => Unpacked::AsIs(Document::Json(text.as_bytes())),
            Some(Cow::Owned(text)) => Unpacked::Json(text.into_bytes()),
            None => Unpacked::AsIs(body),
        },
        Payload::Any => Unpacked::AsIs(any_document(request.body)),
        Payload::Body | Payload::FormJson(_) => Unpacked::AsIs(body),
        Payload::Multipart(_) => Unpacked::AsIs(Document::Json(bare(provider, request).body)),
        Payload::FormXml(field) => match form_text(request, field)? {
            Some(text) => Unpacked::Xml(decoded_xml(&text)?),
            None => Unpacked::AsIs(Document::Form),
        },
        Payload::Xml => {
            let text = std::str::from_utf8(request.body).map_err(|_| Malformed::NotUtf8)?;
            Unpacked::AsIs(Document::Xml(text))
        }
        Payload::Claims(pointer) => Unpacked::Json(claims_text(request.body, pointer)?),
    })
}

/// JSON where the body is JSON, else nothing that could be read.
pub(crate) fn any_document(body: &[u8]) -> Document<'_> {
    match look(body, &[]) {
        Ok(_) => Document::Json(body),
        Err(_) => Document::Form,
    }
}

/// The request with the JSON of a multipart body in place of that body.
pub(crate) fn bare<'a>(provider: &Provider, request: &Request<'a>) -> Request<'a> {
    let json = match provider.payload {
        Payload::Multipart(name) => multipart::field(request.body, name),
        _ => None,
    };
    Request { body: json.unwrap_or(request.body), ..*request }
}

/// XML in base64, which some break into lines.
fn decoded_xml(text: &str) -> Result<String, Malformed> {
    let written: String = text.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(written).map_err(|_| Malformed::NotXml { why: "not base64" })?;
    String::from_utf8(bytes).map_err(|_| Malformed::NotUtf8)
}

/// JSON that is text in the claims of a token, which is the body and was verified as one.
pub(crate) fn claims_text(token: &[u8], pointer: &str) -> Result<Vec<u8>, Malformed> {
    let not_json = Malformed::NotJson { line: 1, column: 1 };
    let claims = jws::claims_of(token).ok_or(not_json.clone())?;
    let text = look(&claims, &[pointer])?.into_iter().next().flatten().and_then(Raw::text);
    text.map(|text| text.into_owned().into_bytes()).ok_or(not_json)
}

/// The one value of a form field.
fn form_text<'a>(request: &Request<'a>, name: &str) -> Result<Option<Cow<'a, str>>, Malformed> {
    only(request.form(name), name)
}

fn only<'a>(
    mut values: impl Iterator<Item = Cow<'a, str>>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, Malformed> {
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(Malformed::DuplicateKey { key: name.to_owned() }),
        (value, _) => Ok(value),
    }
}

/// What a field was found to say.
#[derive(Clone)]
pub(crate) enum Seen<'a> {
    Text(Cow<'a, str>),
    Null,
    /// A boolean, an object or an array: never an id.
    Other,
}

impl<'a> Seen<'a> {
    fn new(raw: Raw<'a>) -> Seen<'a> {
        match raw.text() {
            Some(text) => Seen::Text(text),
            None if raw.is_null() => Seen::Null,
            None => Seen::Other,
        }
    }

    fn into_owned<'b>(self) -> Seen<'b> {
        match self {
            Seen::Text(text) => Seen::Text(Cow::Owned(text.into_owned())),
            Seen::Null => Seen::Null,
            Seen::Other => Seen::Other,
        }
    }
}

/// The paths that an entry reads, by what they start from.
#[derive(Default)]
pub(crate) struct Paths<'p> {
    whole: Vec<&'p str>,
    pub(crate) item: Vec<&'p str>,
    outer: Vec<&'p str>,
    /// Whether the whole of the JSON is read, also where nothing is looked for in it.
    reads_all: bool,
}

impl<'p> Paths<'p> {
    pub(crate) fn new(provider: &'p Provider) -> Paths<'p> {
        let identity = provider.identity.iter().flat_map(Identity::fields);
        let types = provider.event_type.iter().flat_map(TypeRule::fields);
        let versions = provider.version.iter().map(|version| &version.field);
        let fields = identity.chain(types).chain(provider.object.iter()).chain(versions);
        let reads_all = provider.signs_secret() && provider.batches.is_empty();
        let whole = Vec::with_capacity(8);
        let mut paths = Paths { whole, item: Vec::new(), outer: Vec::new(), reads_all };
        for field in fields {
            let (list, path) = match field {
                Field::Json(path) | Field::Within(path, _) | Field::Xml(path) => {
                    (&mut paths.whole, path)
                }
                Field::Item(path) => (&mut paths.item, path),
                Field::Outer(path) => (&mut paths.outer, path),
                Field::KeyBeside(_) | Field::Header(_) | Field::Form(_) | Field::Query(_) => {
                    continue;
                }
            };
            if !list.contains(&path.as_ref()) {
                list.push(path);
            }
        }
        paths
    }
}

type Known<'a, 'p> = Vec<(&'p str, Option<Seen<'a>>)>;

/// The values that an entry asks for, read once for the request and once for every item.
pub(crate) struct Values<'a, 'p> {
    request: Request<'a>,
    document: Document<'a>,
    has_form: bool,
    whole: Known<'a, 'p>,
    item: Known<'a, 'p>,
    outer: Known<'a, 'p>,
    /// The key of the list that the item is in.
    pub(crate) list: Option<&'p str>,
}

impl<'a, 'p> Values<'a, 'p> {
    /// Reads what belongs to the whole request. Where a plain hash of secret and body is the proof,
    /// the body is JSON to its last byte: such a hash verifies some longer bodies too. Elsewhere a
    /// body of which nothing is looked for may be anything.
    pub(crate) fn read(
        request: &Request<'a>,
        document: Document<'a>,
        paths: &Paths<'p>,
    ) -> Result<Values<'a, 'p>, Malformed> {
        let mut values = Values::bare(request, document);
        let is_read = paths.reads_all || !paths.whole.is_empty();
        if let (Document::Json(json), true) = (document, is_read) {
            values.whole = known(json, &paths.whole)?;
        }
        Ok(values)
    }

    /// The same for XML that was parsed.
    pub(crate) fn read_xml(
        request: &Request<'a>,
        root: Node<'_, '_>,
        paths: &Paths<'p>,
    ) -> Result<Values<'a, 'p>, Malformed> {
        let mut values = Values::bare(request, Document::Form);
        values.whole = known_xml(root, &paths.whole)?;
        Ok(values)
    }

    fn bare(request: &Request<'a>, document: Document<'a>) -> Values<'a, 'p> {
        let has_form = matches!(document, Document::Form) || request.is_form();
        let (whole, item, outer) = (Vec::new(), Vec::new(), Vec::new());
        Values { request: *request, document, has_form, whole, item, outer, list: None }
    }

    /// Goes on to an item.
    pub(crate) fn go_to(&mut self, item: &'a [u8], paths: &Paths<'p>) -> Result<(), Malformed> {
        self.item = match paths.item.is_empty() {
            true => Vec::new(),
            false => known(item, &paths.item)?,
        };
        Ok(())
    }

    /// Goes on to what holds the next items, if something does.
    pub(crate) fn go_into(
        &mut self,
        outer: Option<&'a [u8]>,
        paths: &Paths<'p>,
    ) -> Result<(), Malformed> {
        self.outer = match outer.filter(|_| !paths.outer.is_empty()) {
            Some(outer) => known(outer, &paths.outer)?,
            None => Vec::new(),
        };
        Ok(())
    }

    pub(crate) fn go_to_xml(&mut self, n: Node<'_, '_>, p: &Paths<'p>) -> Result<(), Malformed> {
        self.item = known_xml(n, &p.item)?;
        Ok(())
    }

    pub(crate) fn find(&self, field: &Field) -> Result<Option<Seen<'a>>, Malformed> {
        let of = |known: &Known<'a, 'p>, path: &str| {
            let found = known.iter().find(|(known, _)| *known == path);
            found.and_then(|(_, seen)| seen.clone())
        };
        match field {
            Field::Json(path) | Field::Xml(path) => Ok(of(&self.whole, path)),
            Field::Item(path) => Ok(of(&self.item, path)),
            Field::Outer(path) => Ok(of(&self.outer, path)),
            Field::Within(path, inner) => match of(&self.whole, path) {
                // The JSON was unescaped into a copy, so what it holds is copied too.
                Some(Seen::Text(json)) => {
                    let found = look(json.as_bytes(), &[inner])?.into_iter().next().flatten();
                    Ok(found.map(|raw| Seen::new(raw).into_owned()))
                }
                other => Ok(other),
            },
            Field::KeyBeside(names) => Ok(match (self.list, self.document) {
                // Lists beside each other have each a key of its own.
                (Some(list), _) => Some(Seen::Text(Cow::Owned(list.to_owned()))),
                (None, Document::Json(json)) => key_beside(json, names).map(Seen::Text),
                (None, Document::Xml(_) | Document::Form) => None,
            }),
            Field::Header(name) => self.header(name),
            Field::Form(name) => {
                let form = if self.has_form { self.request.body } else { b"" };
                let pairs = form_urlencoded::parse(form).filter(|(known, _)| known == name);
                Ok(only(pairs.map(|(_, value)| value), name)?.map(Seen::Text))
            }
            Field::Query(name) => Ok(only(self.request.query(name), name)?.map(Seen::Text)),
        }
    }

    fn header(&self, name: &str) -> Result<Option<Seen<'a>>, Malformed> {
        let mut values = self.request.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(_), Some(_)) => {
                Err(Malformed::RepeatedHeader { name: Cow::Owned(name.to_owned()) })
            }
            (Some(value), None) => Ok(Some(match value.to_str() {
                Ok("") => Seen::Null,
                Ok(text) => Seen::Text(Cow::Borrowed(text)),
                Err(_) => Seen::Other,
            })),
            (None, _) => Ok(None),
        }
    }

    pub(crate) fn text(&self, field: &Field) -> Result<Option<Cow<'a, str>>, Malformed> {
        Ok(match self.find(field)? {
            Some(Seen::Text(text)) => Some(text),
            Some(Seen::Null | Seen::Other) | None => None,
        })
    }
}

fn known<'a, 'p>(json: &'a [u8], paths: &[&'p str]) -> Result<Known<'a, 'p>, Malformed> {
    let found = look(json, paths)?.into_iter().map(|raw| raw.map(Seen::new));
    Ok(paths.iter().copied().zip(found).collect())
}

fn known_xml<'a, 'p>(node: Node<'_, '_>, paths: &[&'p str]) -> Result<Known<'a, 'p>, Malformed> {
    paths.iter().map(|path| Ok((*path, xml::seen(node, path)?))).collect()
}
