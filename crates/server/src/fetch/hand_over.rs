//! What a push carries where the current object was fetched: both, or the object alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::delivery::Current;
use serde_json::value::RawValue;

use crate::config::HandOver;

/// Says whether there is a current object.
const CURRENT: HeaderName = HeaderName::from_static("oncebox-current");

/// How many bytes of the envelope, after [`BEGIN`], are the event as it came.
const EVENT_BYTES: HeaderName = HeaderName::from_static("oncebox-event-bytes");

/// What an envelope begins with.
const BEGIN: &str = "{\"event\":";

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Headers that tell of the body the provider sent, beside those that begin with `content-`.
const ABOUT_THE_BODY: [&str; 2] = ["digest", "repr-digest"];

/// The body of a push, and the headers that go with it.
pub(crate) fn pack(
    hand_over: HandOver,
    event: &[u8],
    current: &Current,
    headers: &mut HeaderMap,
) -> Vec<u8> {
    let stays = |name: &HeaderName| {
        !name.as_str().starts_with("content-") && !ABOUT_THE_BODY.contains(&name.as_str())
    };
    let gone: Vec<HeaderName> = headers.keys().filter(|name| !stays(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
    let word = match current {
        Current::Found { .. } => "found",
        Current::Missing => "missing",
    };
    headers.insert(CURRENT, HeaderValue::from_static(word));
    headers.insert(CONTENT_TYPE, JSON);
    match (hand_over, current) {
        (HandOver::Envelope, current) => envelope(event, current, headers),
        (HandOver::Object, Current::Found { content_type, body }) => {
            if let Ok(content_type) = HeaderValue::from_str(content_type) {
                headers.insert(CONTENT_TYPE, content_type);
            }
            body.to_vec()
        }
        (HandOver::Object, Current::Missing) => b"null".to_vec(),
    }
}

/// `{"event":…,"current":…}`. What is JSON stands in it byte for byte, white space included, so
/// that the provider's signature can still be checked. What is not is base64, and a key says so.
fn envelope(event: &[u8], current: &Current, headers: &mut HeaderMap) -> Vec<u8> {
    let current: &[u8] = match current {
        Current::Found { body, .. } => body,
        Current::Missing => b"null",
    };
    let mut envelope = Vec::with_capacity(event.len() + current.len() + 64);
    envelope.extend_from_slice(BEGIN.as_bytes());
    if is_json(event) {
        envelope.extend_from_slice(event);
        headers.insert(EVENT_BYTES, HeaderValue::from(event.len()));
    } else {
        envelope.extend(base64(event, "event_encoding"));
    }
    envelope.extend_from_slice(b",\"current\":");
    match is_json(current) {
        true => envelope.extend_from_slice(current),
        false => envelope.extend(base64(current, "current_encoding")),
    }
    envelope.push(b'}');
    envelope
}

/// Whether the bytes are one JSON value. What is more than one could say anything it likes about
/// the rest of the envelope.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
}

fn base64(bytes: &[u8], key: &str) -> Vec<u8> {
    format!("\"{}\",\"{key}\":\"base64\"", STANDARD.encode(bytes)).into_bytes()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn found(body: &'static [u8]) -> Current {
        Current::Found { content_type: "text/x; v=1".into(), body: Bytes::from_static(body) }
    }

    fn packed(hand_over: HandOver, event: &[u8], current: &Current) -> (String, HeaderMap) {
        let mut headers = HeaderMap::new();
        for name in ["content-type", "content-md5", "digest", "x-custom"] {
            headers.insert(name, HeaderValue::from_static("theirs"));
        }
        let body = pack(hand_over, event, current, &mut headers);
        (String::from_utf8(body).unwrap(), headers)
    }

    #[test]
    fn json_stands_in_the_envelope_byte_for_byte() {
        let event = " {\"a\" : 1e400,\n \"a\":\"\\u00e9\"} \r\n".as_bytes();
        let (body, headers) = packed(HandOver::Envelope, event, &found(b"{\"b\": 2}\n"));
        let event = std::str::from_utf8(event).unwrap();
        assert_eq!(body, format!("{{\"event\":{event},\"current\":{{\"b\": 2}}\n}}"));
        let length: usize = headers["oncebox-event-bytes"].to_str().unwrap().parse().unwrap();
        assert_eq!(&body[BEGIN.len()..BEGIN.len() + length], event);
        assert_eq!(headers["oncebox-current"], "found");
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["x-custom"], "theirs");
        assert!(headers.get("content-md5").is_none() && headers.get("digest").is_none());
    }

    #[test]
    fn what_is_no_json_is_base64_and_says_so() {
        for event in ["a=b", "", "{} {}", "{},\"current\":{}", "{", "\u{feff}{}"] {
            let (body, headers) = packed(HandOver::Envelope, event.as_bytes(), &Current::Missing);
            let read: serde_json::Value = serde_json::from_str(&body).unwrap();
            let encoded = STANDARD.encode(event);
            let expected = serde_json::json!({
                "event": encoded, "event_encoding": "base64", "current": null
            });
            assert_eq!(read, expected, "{event:?}");
            assert!(headers.get("oncebox-event-bytes").is_none());
            assert_eq!(headers["oncebox-current"], "missing");
        }
        let (body, _) = packed(HandOver::Envelope, b"{}", &found(b"\xff\xfe"));
        assert_eq!(body, r#"{"event":{},"current":"//4=","current_encoding":"base64"}"#);
    }

    #[test]
    fn the_object_can_go_alone() {
        let (body, headers) = packed(HandOver::Object, b"{}", &found(b"any <text>"));
        assert_eq!(
            (body.as_str(), &headers["content-type"]),
            ("any <text>", &"text/x; v=1".parse().unwrap())
        );
        let (body, headers) = packed(HandOver::Object, b"{}", &Current::Missing);
        assert_eq!((body.as_str(), &headers["content-type"]), ("null", &JSON));
        assert_eq!(headers["oncebox-current"], "missing");
    }
}
