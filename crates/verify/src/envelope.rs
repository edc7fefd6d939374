//! One event of a request that carried several, alone in a request such as its provider sends.

use std::borrow::Cow;

use crate::batch::{self, Item};
use crate::look::{Raw, look, members};
use crate::provider::{Batch, Payload, Provider};
use crate::request::Request;
use crate::xml;

/// Whether a request with several events is a list of them and nothing else, so that `[`, the
/// event and `]` is what the provider would send for one of them.
pub fn is_bare_list(provider: &Provider) -> bool {
    let is_bare = |batch: &Batch| batch.items.is_empty() && batch.inner.is_empty();
    provider.payload == Payload::Body && provider.batches.iter().all(is_bare)
}

/// The body of a request that carried several events, with only one of them in it: that at
/// `position`, counted from 0, which must be `event`. None if it is not.
///
/// The event and all that is no event stay as they are written; lists of other events that stood
/// beside its own are left out.
///
/// ```
/// use oncebox_verify::{Request, alone, catalogue};
///
/// let xero = catalogue::find("xero").unwrap();
/// let body = br#"{"events":[{"eventId":1},{"eventId":2.0}],"lastEventSequence":2}"#;
/// let headers = http::HeaderMap::new();
/// let request = Request { method: "POST", url: "/", headers: &headers, body };
///
/// let second = alone(xero, &request, 1, br#"{"eventId":2.0}"#).unwrap();
/// assert_eq!(second, br#"{"events":[{"eventId":2.0}],"lastEventSequence":2}"#);
/// assert!(alone(xero, &request, 0, br#"{"eventId":2.0}"#).is_none());
/// ```
pub fn alone(
    provider: &Provider,
    request: &Request<'_>,
    position: usize,
    event: &[u8],
) -> Option<Vec<u8>> {
    match provider.payload {
        Payload::FormJson(field) if request.is_form() => {
            let payload = request.form(field).next()?;
            let json = alone_in_json(provider, payload.as_bytes(), position, event)?;
            Some(with_field(request.body, field, &json))
        }
        Payload::Body | Payload::Any | Payload::FormJson(_) => {
            Some(alone_in_json(provider, request.body, position, event)?.into_bytes())
        }
        Payload::Xml => {
            let text = std::str::from_utf8(request.body).ok()?;
            Some(alone_in_xml(provider.batches.first()?, text, position, event)?.into_bytes())
        }
        Payload::Multipart(_) | Payload::FormXml(_) | Payload::Claims(_) => None,
    }
}

fn alone_in_json(
    provider: &Provider,
    payload: &[u8],
    position: usize,
    event: &[u8],
) -> Option<String> {
    let items = batch::items(provider, payload).ok()??;
    let Item { outer, item, list, .. } = *items.get(position)?;
    if item.written().as_bytes() != event {
        return None;
    }
    let own = provider.batches.iter().find(|batch| batch.items.strip_prefix('/') == list)?;
    // What holds nothing that is known is an event itself.
    let holder = outer.filter(|outer| !std::ptr::eq(outer.written(), item.written()));
    let kept = match holder {
        Some(holder) => alone_in_holder(own, holder, item)?,
        None => item.written().to_owned(),
    };
    if own.items.is_empty() {
        return Some(format!("[{kept}]"));
    }
    let pointers: Vec<&str> = provider.batches.iter().map(|batch| batch.items.as_ref()).collect();
    let lists = look(payload, &pointers).ok()?;
    let edits = pointers.iter().zip(lists).filter(|(pointer, _)| !pointer.is_empty());
    let edits = edits.map(|(pointer, found)| {
        let is_own = *pointer == own.items;
        (*pointer, is_own.then(|| listed(found, &kept)))
    });
    let edits: Vec<(&str, Option<String>)> = edits.collect();
    rewritten(Raw::new(std::str::from_utf8(payload).ok()?.trim()), &edits)
}

/// What holds several events, with one of them.
fn alone_in_holder(batch: &Batch, holder: Raw<'_>, item: Raw<'_>) -> Option<String> {
    let pointers: Vec<&str> = batch.inner.iter().map(AsRef::as_ref).collect();
    let lists = look(holder.written().as_bytes(), &pointers).ok()?;
    let edits = pointers.iter().zip(lists).map(|(pointer, list)| {
        let is_own = list.is_some_and(|list| {
            list.written().as_bytes().as_ptr_range().contains(&item.written().as_ptr())
        });
        (*pointer, is_own.then(|| listed(list, item.written())))
    });
    let edits: Vec<(&str, Option<String>)> = edits.collect();
    rewritten(holder, &edits)
}

/// A list of one, as the provider writes it: some leave the brackets out.
fn listed(list: Option<Raw<'_>>, kept: &str) -> String {
    match list.is_some_and(Raw::is_object) {
        true => kept.to_owned(),
        false => format!("[{kept}]"),
    }
}

/// An object with other values at some pointers, or without what is there.
fn rewritten(object: Raw<'_>, edits: &[(&str, Option<String>)]) -> Option<String> {
    let mut written = Vec::new();
    for (key, value) in members(object)? {
        let name = key.text()?;
        let inside: Vec<(&str, Option<String>)> = edits
            .iter()
            .filter_map(|(pointer, edit)| Some((below(pointer, &name)?, edit.clone())))
            .collect();
        let value = match inside.iter().find(|(rest, _)| rest.is_empty()) {
            Some((_, None)) => continue,
            Some((_, Some(other))) => Cow::Borrowed(other.as_str()),
            None if inside.is_empty() || !value.is_object() => Cow::Borrowed(value.written()),
            None => Cow::Owned(rewritten(value, &inside)?),
        };
        written.push(format!("{}:{value}", key.written()));
    }
    Some(format!("{{{}}}", written.join(",")))
}

/// The rest of a pointer that goes by this key first.
fn below<'p>(pointer: &'p str, key: &str) -> Option<&'p str> {
    let path = pointer.strip_prefix('/')?;
    let end = path.find('/').unwrap_or(path.len());
    let first = path[..end].replace("~1", "/").replace("~0", "~");
    (first == key).then(|| &path[end..])
}

/// The elements of an XML batch but one are cut out, and nothing else is touched.
fn alone_in_xml(batch: &Batch, text: &str, position: usize, event: &[u8]) -> Option<String> {
    let document = xml::parse(text).ok()?;
    let elements = xml::elements(document.root(), &batch.items).ok()??;
    if text[elements.get(position)?.range()].as_bytes() != event {
        return None;
    }
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for (number, element) in elements.iter().enumerate() {
        if number != position {
            kept.push_str(&text[from..element.range().start]);
            from = element.range().end;
        }
    }
    kept.push_str(&text[from..]);
    Some(kept)
}

/// A form with another value in one field, every other one as it is written.
fn with_field(form: &[u8], field: &str, value: &str) -> Vec<u8> {
    let new = form_urlencoded::Serializer::new(String::new()).append_pair(field, value).finish();
    let is_it = |pair: &[u8]| form_urlencoded::parse(pair).any(|(name, _)| name == field);
    let pairs = form.split(|byte| *byte == b'&');
    let pairs = pairs.map(|pair| if is_it(pair) { new.as_bytes() } else { pair });
    pairs.collect::<Vec<_>>().join(&b'&')
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::{catalogue, events};

    fn request<'a>(headers: &'a HeaderMap, body: &'a [u8]) -> Request<'a> {
        Request { method: "POST", url: "/", headers, body }
    }

    /// Every event of a request alone, and what is read of it there.
    fn each(provider: &str, content_type: &'static str, body: &str) -> Vec<String> {
        let provider = catalogue::find(provider).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        let whole = request(&headers, body.as_bytes());
        let all = events(provider, &whole).unwrap();
        let bodies = all.iter().enumerate().map(|(position, found)| {
            let body = alone(provider, &whole, position, &found.bytes).unwrap();
            let single = request(&headers, &body);
            let [single] = <[_; 1]>::try_from(events(provider, &single).unwrap()).unwrap();
            assert_eq!((&single.event, &single.bytes), (&found.event, &found.bytes));
            assert!(alone(provider, &whole, position, b"{}").is_none());
            String::from_utf8(body).unwrap()
        });
        bodies.collect()
    }

    const JSON: &str = "application/json";

    #[test]
    fn lists_at_the_root_inside_and_nested() {
        let quickbooks = each("quickbooks", JSON, r#" [ {"id":"1"} , {"id":"2" } ] "#);
        assert_eq!(quickbooks, [r#"[{"id":"1"}]"#, r#"[{"id":"2" }]"#]);
        let okta = r#"{"eventType":"x", "data":{"a":1.00,"events":[{"uuid":"1"},{"uuid":"2"}]}}"#;
        assert_eq!(
            each("okta", JSON, okta)[1],
            r#"{"eventType":"x","data":{"a":1.00,"events":[{"uuid":"2"}]}}"#
        );
        let meta = r#"{"object":"page","entry":[
            {"id":"1","time":1,"messaging":[{"message":{"mid":"a"}},{"message":{"mid":"b"}}]},
            {"id":"2","time":2,"changes":[{"field":"feed","value":{}}]}]}"#;
        let entry = |entry: &str| format!(r#"{{"object":"page","entry":[{entry}]}}"#);
        assert_eq!(
            each("meta", JSON, meta),
            [
                entry(r#"{"id":"1","time":1,"messaging":[{"message":{"mid":"a"}}]}"#),
                entry(r#"{"id":"1","time":1,"messaging":[{"message":{"mid":"b"}}]}"#),
                entry(r#"{"id":"2","time":2,"changes":[{"field":"feed","value":{}}]}"#),
            ]
        );
    }

    /// The name of its list is the type of an event, so no other list may stay.
    #[test]
    fn other_lists_are_left_out() {
        let x = r#"{"for_user_id":"1","tweet_create_events":[{"id_str":"5"}],
            "favorite_events":[{"id":"6"},{"id":"7"}]}"#;
        assert_eq!(
            each("x", JSON, x),
            [
                r#"{"for_user_id":"1","tweet_create_events":[{"id_str":"5"}]}"#,
                r#"{"for_user_id":"1","favorite_events":[{"id":"6"}]}"#,
                r#"{"for_user_id":"1","favorite_events":[{"id":"7"}]}"#,
            ]
        );
    }

    #[test]
    fn forms_and_xml() {
        let mandrill = "a=%20&mandrill_events=%5B%7B%22_id%22%3A%221%22%2C%22ts%22%3A1%7D%2C\
                        %7B%22_id%22%3A%222%22%2C%22ts%22%3A2%7D%5D&b=c";
        let form = each("mandrill", "application/x-www-form-urlencoded", mandrill);
        assert_eq!(
            form[1],
            "a=%20&mandrill_events=%5B%7B%22_id%22%3A%222%22%2C%22ts%22%3A2%7D%5D&b=c"
        );
        let soap = "<e:Envelope xmlns:e=\"e\"><e:Body><notifications xmlns=\"n\"><OrganizationId>1\
                    </OrganizationId><Notification><Id>1</Id></Notification>\n<Notification>\
                    <Id>2</Id></Notification></notifications></e:Body></e:Envelope>";
        assert_eq!(
            each("salesforce-outbound", "text/xml", soap)[0],
            soap.replace("<Notification><Id>2</Id></Notification>", "")
        );
    }
}
