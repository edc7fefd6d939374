//! An event as its handler sees it.

use std::any::TypeId;
use std::ops::Range;

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::Failure;
use crate::delivery::{Claimed, Current, DeliveryId, Payload};
use crate::receipt::{ReceiptId, decode_headers};

/// An event, with as much of its payload as the handler names.
///
/// `T` is read from the JSON of the payload; fields it does not name are passed over. A payload
/// that cannot be read so is dead at once, with the path of the field that is in the way. `()`
/// reads nothing, for payloads that are no JSON: [`raw`](Self::raw) has the bytes.
///
/// ```
/// use oncebox::handler::Event;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Paid {
///     data: Data,
/// }
///
/// #[derive(Deserialize)]
/// struct Data {
///     invoice: String,
///     cents: i64,
/// }
///
/// fn text(event: &Event<Paid>) -> String {
///     format!("{}: {} cents, attempt {}", event.data.data.invoice, event.data.data.cents,
///         event.attempt)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Event<T> {
    /// What was read of the payload.
    pub data: T,
    /// The name of the source it came in by.
    pub source: String,
    /// The provider's id of the event.
    pub event_id: String,
    /// The provider's type of the event.
    pub event_type: String,
    /// The business thing it is about.
    pub object: Option<String>,
    /// The provider's ordering value.
    pub version: Option<i64>,
    /// Its receipt.
    pub receipt: ReceiptId,
    /// The delivery it is handled as.
    pub delivery: DeliveryId,
    /// When it was received.
    pub received_at: Timestamp,
    /// How often it was tried since it was recorded or last replayed, this time included.
    pub attempt: u32,
    /// How often it was replayed.
    pub replay: u32,
    /// The key of the delivery: the same over retries, replays and renames.
    pub key: String,
    payload: Payload,
}

impl<T> Event<T> {
    /// The payload, byte for byte.
    pub fn raw(&self) -> &[u8] {
        &self.payload.body
    }

    /// The headers of the request, names in lower case, in the order they came.
    pub fn headers(&self) -> Vec<(String, Vec<u8>)> {
        decode_headers(&self.payload.headers)
    }

    /// The first header of a name, in lower case, if it is text.
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers().into_iter().find(|(header, _)| header == name);
        String::from_utf8(found?.1).ok()
    }

    /// The object as its provider had it just before this attempt, where the route fetches that.
    pub fn current(&self) -> Option<&Current> {
        self.payload.current.as_ref()
    }

    /// As [`Self::current`], read as `U`. None if nothing is fetched or the provider has no such
    /// object any more.
    pub fn current_as<U: DeserializeOwned>(&self) -> Result<Option<U>, Failure> {
        read_current(self.current())
    }
}

impl<T: DeserializeOwned + 'static> Event<T> {
    pub(super) fn read(claimed: &Claimed, payload: Payload) -> Result<Self, Failure> {
        let nothing = TypeId::of::<T>() == TypeId::of::<()>();
        let body = if nothing { b"null" } else { payload.body.as_slice() };
        Ok(Self {
            data: read("the payload", body)?,
            source: claimed.source_name.clone(),
            event_id: claimed.event_id.clone(),
            event_type: claimed.event_type.clone(),
            object: claimed.object.clone(),
            version: claimed.version,
            receipt: claimed.delivery.receipt,
            delivery: claimed.delivery,
            received_at: claimed.received_at,
            attempt: claimed.counts.attempts,
            replay: claimed.replays,
            key: claimed.key.clone(),
            payload,
        })
    }
}

/// Reads the object that was fetched, if there is one.
pub(super) fn read_current<U: DeserializeOwned>(
    current: Option<&Current>,
) -> Result<Option<U>, Failure> {
    match current {
        Some(Current::Found { body, .. }) => read("the current object", body).map(Some),
        Some(Current::Missing) | None => Ok(None),
    }
}

/// Reads JSON. What cannot be read is permanent: it will be the same the next time.
fn read<T: DeserializeOwned>(what: &str, json: &[u8]) -> Result<T, Failure> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // A question mark stands for what was not read far enough to be named.
        let path = path.trim_end_matches('?').trim_end_matches('.');
        let place = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
        unreadable(what, &place, &error.into_inner())
    })?;
    reader.end().map_err(|error| unreadable(what, "", &error))?;
    Ok(value)
}

fn unreadable(what: &str, place: &str, error: &serde_json::Error) -> Failure {
    let why = without_quotes(&error.to_string());
    Failure::dead(format!(
        "{what} does not parse{place}: {why}; mend the type the handler reads, then replay it"
    ))
}

/// Takes the payload's own text out of an error: whoever may see why an attempt failed need not
/// be one who may see payloads.
fn without_quotes(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(Range { start, end }) = quoted(rest) {
        clean.push_str(&rest[..start]);
        clean.push_str("\"…\"");
        rest = &rest[end..];
    }
    clean + rest
}

/// Where the first text in quotation marks is.
fn quoted(text: &str) -> Option<Range<usize>> {
    let start = text.find('"')?;
    let mut escaped = false;
    for (at, c) in text[start + 1..].char_indices() {
        match c {
            '"' if !escaped => return Some(start..start + 1 + at + 1),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    Some(start..text.len())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Paid {
        lines: Vec<Line>,
    }

    #[derive(Debug, Deserialize)]
    struct Line {
        cents: i64,
    }

    fn why(json: &str) -> String {
        let failure = read::<Paid>("the payload", json.as_bytes()).unwrap_err();
        assert!(failure.is_dead());
        failure.to_string()
    }

    #[test]
    fn only_what_is_named_is_read() {
        let json = r#"{"lines": [{"cents": 1, "more": null}], "id": "in_1"}"#;
        let paid = read::<Paid>("it", json.as_bytes()).unwrap();
        assert_eq!(paid.lines.iter().map(|line| line.cents).sum::<i64>(), 1);
    }

    #[test]
    fn errors_name_the_path_and_keep_the_payload_to_themselves() {
        let text = why(r#"{"lines": [{"cents": 1}, {"cents": "se\"cret"}]}"#);
        assert!(text.contains("at `lines[1].cents`: invalid type: string \"…\", exp"), "{text}");
        assert!(!text.contains("cret"), "{text}");
        assert!(why(r#"{"lines": [{}]}"#).contains("`lines[0]`: missing field `cents`"));
        assert!(why("{").contains("does not parse: EOF"));
        assert!(why(r#"{"lines": [{"cents"#).contains("does not parse at `lines[0]`: EOF"));
        assert!(why(r#"{"lines": []} x"#).contains("trailing characters"));
    }
}
