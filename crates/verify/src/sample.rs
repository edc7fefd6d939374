//! Sample events, as each provider would send them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::batch::item_pointers;
use crate::provider::{
    Field, Identity, Part, Payload, Provider, Scheme, TypeRule, Unit, ValueKind,
};
use crate::request::Draft;
use crate::sign::{add_query, put};
use crate::xml;

/// What a sample event should be.
#[derive(Clone, Copy, Debug)]
pub struct SampleEvent<'a> {
    /// Its identity. Where identities are digests, it only makes the body differ.
    pub id: &'a str,
    /// Its type; empty for the provider's usual one.
    pub event_type: &'a str,
    /// When it happened.
    pub at: Timestamp,
    /// The object it is about; none for a made-up one.
    pub object: Option<&'a str>,
}

/// An unsigned request such as the provider sends. Signed, it is identified by
/// exactly the id and type asked for, except where the provider leaves no choice: an
/// identity that is a digest, a type with a fixed beginning.
pub fn sample(provider: &Provider, event: &SampleEvent<'_>) -> Draft {
    let mut maker = Maker::new(provider);
    let asked = if event.event_type.is_empty() { &provider.sample_type } else { event.event_type };
    maker.set_type(&provider.event_type, asked);
    if let (Some(field), object) = (maker.first_fit(&provider.object), event.object) {
        let object = object.unwrap_or(&provider.sample.object);
        match object.parse::<u64>() {
            Ok(number) if is_signed_integer(provider, field) => {
                maker.put(field, Value::from(number));
            }
            _ => maker.set(field, object),
        }
    }
    for version in provider.version.iter() {
        if maker.fits(&version.field) {
            maker.set_time(&version.field, version.unit, event.at);
            break;
        }
    }
    maker.set_identity(provider, event.id);
    maker.fill_signed_headers(&provider.schemes, event.id);
    maker.finish()
}

/// Whether the entry looks for an identity or a type in a form before anywhere else.
fn reads_form(provider: &Provider) -> bool {
    let identity = provider.identity.first();
    let kind = provider.event_type.first().map(|rule| &rule.first);
    matches!(identity, Some(Identity::Field(Field::Form(_))))
        || matches!(kind, Some(Field::Form(_)))
}

/// Whether the signature covers the value of a field only where it is an integer.
fn is_signed_integer(provider: &Provider, field: &Field) -> bool {
    let Field::Json(pointer) = field else { return false };
    let signatures = provider.schemes.iter().filter_map(Scheme::signature);
    let mut parts = signatures.flat_map(|signature| signature.signed.iter());
    parts.any(|part| matches!(part, Part::JsonAs(signed, ValueKind::Integer) if signed == pointer))
}

/// What the event is written into.
enum Shape {
    Json(Value),
    Xml(String),
    /// The fields of the form are the event.
    Form,
}

struct Maker {
    headers: HeaderMap,
    url: String,
    shape: Shape,
    payload: Payload,
    form: Option<Vec<(String, String)>>,
    /// The pointers to the first item and to what holds it; for XML the paths. The payload itself
    /// where it is one event.
    item: String,
    outer: Option<String>,
}

impl Maker {
    fn new(provider: &Provider) -> Maker {
        let body = &provider.sample.body;
        let payload = provider.payload;
        let shape = match payload {
            Payload::Xml | Payload::FormXml(_) => Shape::Xml(body.to_string()),
            Payload::FormJson(_) | Payload::Multipart(_) | Payload::Claims(_) => {
                Shape::Json(object(body))
            }
            Payload::Body if provider.sample.form || reads_form(provider) => Shape::Form,
            Payload::Body | Payload::Any => Shape::Json(object(body)),
        };
        let form = match (payload, &shape) {
            (Payload::FormXml(_), _) => Some(Vec::new()),
            (Payload::FormJson(_), _) if provider.sample.form => Some(Vec::new()),
            (_, Shape::Form) if provider.sample.form => {
                Some(form_urlencoded::parse(body.as_bytes()).into_owned().collect())
            }
            (_, Shape::Form) => Some(Vec::new()),
            _ => None,
        };
        let (item, outer) = match &shape {
            Shape::Json(json) => item_pointers(provider, json).into_iter().next(),
            Shape::Xml(_) => provider.batches.first().map(|batch| (batch.items.to_string(), None)),
            Shape::Form => None,
        }
        .unwrap_or_default();
        let content_type = match (&form, &shape) {
            (Some(_), _) => "application/x-www-form-urlencoded",
            (None, Shape::Xml(_)) => "text/xml",
            (None, _) => "application/json",
        };
        let url = "https://example.com/in/sample".to_owned();
        let headers = HeaderMap::new();
        let mut maker = Maker { headers, url, shape, payload, form, item, outer };
        maker.set_header("content-type", content_type);
        for (name, value) in provider.sample.headers.iter() {
            maker.set_header(name, value);
        }
        maker
    }

    /// Whether the sample has a place for a field.
    fn fits(&self, field: &Field) -> bool {
        match (field, &self.shape) {
            (Field::Outer(_), _) => self.outer.is_some(),
            (Field::Json(_) | Field::Within(..) | Field::KeyBeside(_), shape) => {
                matches!(shape, Shape::Json(_))
            }
            (Field::Item(_), shape) => !matches!(shape, Shape::Form),
            (Field::Xml(_), shape) => matches!(shape, Shape::Xml(_)),
            (Field::Form(_), _) => self.form.is_some(),
            (Field::Header(_) | Field::Query(_), _) => true,
        }
    }

    fn first_fit<'f>(&self, fields: &'f [Field]) -> Option<&'f Field> {
        fields.iter().find(|field| self.fits(field))
    }

    fn set(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn put(&mut self, field: &Field, value: Value) {
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match (field, &mut self.shape) {
            (Field::Header(name), _) => self.set_header(name, &text()),
            (Field::Query(name), _) => {
                let mut draft = self.bare();
                add_query(&mut draft, name, &text());
                self.url = draft.url;
            }
            (Field::Form(name), _) => {
                let form = self.form.get_or_insert_default();
                form.retain(|(known, _)| known != name);
                form.push((name.clone().into_owned(), text()));
            }
            (Field::Json(pointer), Shape::Json(json)) => put(json, pointer, value),
            (Field::Item(pointer), Shape::Json(json)) => {
                if let Some(item) = json.pointer_mut(&self.item) {
                    put(item, pointer, value);
                }
            }
            (Field::Outer(pointer), Shape::Json(json)) => {
                let outer = self.outer.as_ref().and_then(|outer| json.pointer_mut(outer));
                if let Some(outer) = outer {
                    put(outer, pointer, value);
                }
            }
            (Field::Within(pointer, inner), Shape::Json(json)) => {
                let written = json.pointer(pointer).and_then(Value::as_str).unwrap_or("{}");
                let mut within = object(written);
                put(&mut within, inner, value);
                put(json, pointer, Value::from(within.to_string()));
            }
            (Field::KeyBeside(names), Shape::Json(Value::Object(members))) => {
                let old = members.keys().find(|key| !names.contains(&Cow::Borrowed(key.as_str())));
                let held = old.cloned().and_then(|old| members.remove(&old));
                members.insert(text(), held.unwrap_or_else(|| Value::Object(Map::new())));
            }
            (Field::Xml(path), Shape::Xml(xml)) => xml::put(xml, path, &text()),
            (Field::Item(path), Shape::Xml(xml)) => {
                xml::put(xml, &format!("{}{path}", self.item), &text());
            }
            _ => {}
        }
    }

    /// A value that cannot be sent is left out; identification then says so.
    fn set_header(&mut self, name: &str, value: &str) {
        let name = http::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_str(value)) {
            self.headers.insert(name, value);
        }
    }

    fn set_type(&mut self, rules: &[TypeRule], event_type: &str) {
        let fits =
            |rule: &&TypeRule| !rule.text.is_empty() && event_type.starts_with(rule.text.as_ref());
        let bare = |rule: &&TypeRule| rule.text.is_empty() && self.fits(&rule.first);
        let rule = rules.iter().find(fits).or_else(|| rules.iter().find(bare));
        let Some(rule) = rule.or(rules.first()) else { return };
        let rest = event_type.strip_prefix(rule.text.as_ref()).unwrap_or(event_type);
        match (&rule.then, rest.split_once('.')) {
            (Some(then), Some((first, second))) => {
                self.set(&rule.first, first);
                self.set(then, second);
            }
            _ => self.set(&rule.first, rest),
        }
    }

    fn set_time(&mut self, field: &Field, unit: Unit, at: Timestamp) {
        let number = match unit {
            Unit::Seconds => at.as_second(),
            Unit::Milliseconds | Unit::Plain => at.as_millisecond(),
            Unit::Iso8601 => return self.set(field, &at.to_string()),
        };
        match field {
            Field::Form(_) | Field::Header(_) | Field::Query(_) => {
                self.set(field, &number.to_string());
            }
            _ => self.put(field, Value::from(number)),
        }
    }

    /// Puts the id where it will be looked for. Of several fields that are joined it goes into
    /// the first that is nothing else: no type, version or object.
    fn set_identity(&mut self, provider: &Provider, id: &str) {
        let types: Vec<&Field> = provider.event_type.iter().flat_map(TypeRule::fields).collect();
        let versions = provider.version.iter().map(|version| &version.field);
        let taken: Vec<&Field> = types.iter().copied().chain(versions).collect();
        let object = self.first_fit(&provider.object);
        for identity in provider.identity.iter() {
            match identity {
                Identity::Field(field) if self.fits(field) => return self.set(field, id),
                // The digest beside the type tells events apart.
                Identity::JoinedDigest(fields)
                    if fields.iter().all(|field| types.contains(&field) && self.fits(field)) =>
                {
                    break;
                }
                Identity::Joined(fields) | Identity::JoinedDigest(fields)
                    if fields.iter().all(|field| self.fits(field)) =>
                {
                    let free = |field: &&Field| !taken.contains(field);
                    let idle = |field: &&Field| free(field) && object != Some(*field);
                    let field = fields.iter().find(idle).or(fields.iter().find(free));
                    if let Some(field) = field.or(fields.first()) {
                        self.set(field, id);
                    }
                    return;
                }
                Identity::Digest | Identity::Each => break,
                Identity::Field(_) | Identity::Joined(_) | Identity::JoinedDigest(_) => {}
            }
        }
        let typed_by_key = provider.event_type.iter().any(|rule| is_key(&rule.first));
        let made_up = match &self.shape {
            Shape::Form => Field::Form(Cow::Borrowed("sample_id")),
            // Beside the key that is the type, it could pass for the type.
            Shape::Json(Value::Object(members)) if typed_by_key => {
                let key = members.keys().next().map_or("", String::as_str);
                Field::Json(Cow::Owned(format!("/{key}/sample_id")))
            }
            Shape::Json(_) | Shape::Xml(_) => Field::Item(Cow::Borrowed("/sample_id")),
        };
        self.set(&made_up, id);
    }

    /// Some schemes sign headers that the sample has no value for yet.
    fn fill_signed_headers(&mut self, schemes: &[Scheme], id: &str) {
        let Some(signature) = schemes.first().and_then(Scheme::signature) else { return };
        for part in signature.signed.iter() {
            if let Part::Header(name) = part
                && !self.headers.contains_key(name.as_ref())
            {
                self.set_header(name, id);
            }
        }
    }

    /// A draft that has nothing but a URL.
    fn bare(&self) -> Draft {
        Draft {
            method: "POST".to_owned(),
            url: self.url.clone(),
            headers: HeaderMap::new(),
            body: Vec::new(),
        }
    }

    fn finish(self) -> Draft {
        let mut draft = self.bare();
        draft.headers = self.headers;
        let written = match self.shape {
            Shape::Json(json) => json.to_string(),
            Shape::Xml(xml) => xml,
            Shape::Form => String::new(),
        };
        let body = match (self.form, self.payload) {
            (Some(mut pairs), payload) => {
                match payload {
                    Payload::FormJson(field) => pairs.push((field.to_owned(), written)),
                    // In lines that end, as Ruby encodes it.
                    Payload::FormXml(field) => {
                        pairs.push((field.to_owned(), format!("{}\n", STANDARD.encode(written))));
                    }
                    Payload::Body
                    | Payload::Any
                    | Payload::Multipart(_)
                    | Payload::Xml
                    | Payload::Claims(_) => {}
                }
                form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
            }
            // The claims of the token, which signing makes of it.
            (None, Payload::Claims(pointer)) => {
                let mut claims = Value::Object(Map::new());
                put(&mut claims, pointer, Value::from(written));
                claims.to_string()
            }
            (None, _) => written,
        };
        draft.body = body.into_bytes();
        draft
    }
}

fn is_key(field: &Field) -> bool {
    matches!(field, Field::KeyBeside(_))
}

/// The JSON of a sample; an empty object where it is none.
fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::Object(Map::new()))
}
