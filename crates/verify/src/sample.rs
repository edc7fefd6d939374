//! Sample events, as each provider would send them.

use std::borrow::Cow;

use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::provider::{Field, Identity, Part, Provider, Scheme, TypeRule, Unit};
use crate::request::Draft;
use crate::sign::put;

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
    if let (Some(field), object) = (provider.object.first(), event.object) {
        maker.set(field, object.unwrap_or(&provider.sample.object));
    }
    if let Some(version) = provider.version.first() {
        maker.set_time(&version.field, version.unit, event.at);
    }
    maker.set_identity(&provider.identity, event.id);
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

struct Maker {
    headers: HeaderMap,
    json: Value,
    form: Option<Vec<(String, String)>>,
}

impl Maker {
    fn new(provider: &Provider) -> Maker {
        let body = &provider.sample.body;
        let form = match (provider.sample.form, reads_form(provider)) {
            (true, _) => Some(form_urlencoded::parse(body.as_bytes()).into_owned().collect()),
            (false, true) => Some(Vec::new()),
            (false, false) => None,
        };
        let json = serde_json::from_str(body).unwrap_or_else(|_| Value::Object(Map::new()));
        let mut maker = Maker { headers: HeaderMap::new(), json, form };
        let content_type = match maker.form {
            Some(_) => "application/x-www-form-urlencoded",
            None => "application/json",
        };
        maker.set_header("content-type", content_type);
        for (name, value) in provider.sample.headers.iter() {
            maker.set_header(name, value);
        }
        maker
    }

    fn set(&mut self, field: &Field, value: &str) {
        match (field, &mut self.form) {
            (Field::Json(pointer), None) => put(&mut self.json, pointer, Value::from(value)),
            (Field::Header(name), _) => self.set_header(name, value),
            (Field::Form(name), form) => {
                let form = form.get_or_insert_default();
                form.retain(|(known, _)| known != name);
                form.push((name.clone().into_owned(), value.to_owned()));
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
        let bare = |rule: &&TypeRule| rule.text.is_empty();
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
        match (field, &self.form) {
            (Field::Json(pointer), None) => put(&mut self.json, pointer, Value::from(number)),
            _ => self.set(field, &number.to_string()),
        }
    }

    fn set_identity(&mut self, identity: &[Identity], id: &str) {
        match identity.first() {
            Some(Identity::Field(field)) => self.set(field, id),
            Some(Identity::Joined(fields) | Identity::JoinedDigest(fields)) => {
                if let Some(field) = fields.first() {
                    self.set(field, id);
                }
            }
            Some(Identity::Digest | Identity::Each) | None => {
                let made_up = match self.form {
                    Some(_) => Field::Form(Cow::Borrowed("sample_id")),
                    None => Field::Json(Cow::Borrowed("/sample_id")),
                };
                self.set(&made_up, id);
            }
        }
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

    fn finish(self) -> Draft {
        let body = match self.form {
            Some(pairs) => {
                form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
            }
            None => self.json.to_string(),
        };
        Draft {
            method: "POST".to_owned(),
            url: "https://example.com/in/sample".to_owned(),
            headers: self.headers,
            body: body.into_bytes(),
        }
    }
}
