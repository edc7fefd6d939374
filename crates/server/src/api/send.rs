//! Outbox messages of workers that pull: written once under their key, relayed after.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use oncebox::effect::{Message, Sent, Under};
use oncebox::limits::{API_MESSAGE_BODY, MESSAGE_BYTES};
use oncebox::receipt::ReceiptId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::effects::{json, key};
use super::problem::Problem;
use super::pull::ticket;
use super::{Api, Name};
use crate::config::is_name;
use crate::metrics::EffectCall;

/// The longest content type.
const CONTENT_TYPE_BYTES: usize = 255;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Send {
    lease: String,
    destination: String,
    key: String,
    // A `null` is a payload like any other.
    #[serde(default, deserialize_with = "as_written")]
    payload: Option<Box<RawValue>>,
    payload_base64: Option<String>,
    content_type: Option<String>,
    group: Option<String>,
}

fn as_written<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// What became of a message.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    status: &'static str,
    /// The receipt it is kept under.
    message: String,
}

/// Writes a message. Said again it is a duplicate, and sent once.
pub(super) async fn send(
    Shared(api): Shared<Arc<Api>>,
    id: Name,
    request: Request<Body>,
) -> Result<Json<Told>, Problem> {
    let (delivery, route, said) = api.about_within::<Send>(id, request, API_MESSAGE_BODY).await?;
    let under = Under { delivery, lease: ticket(&said.lease)?.lease };
    let message = message(said)?;
    let told = |status, message: ReceiptId| Json(Told { status, message: message.to_string() });
    match api.in_time(api.inbox.store.send(under, &message)).await? {
        Sent::New(id) => {
            api.count_call(&route, EffectCall::Sent);
            Ok(told("sent", id))
        }
        Sent::Before(id) => {
            api.count_call(&route, EffectCall::Repeated);
            Ok(told("duplicate", id))
        }
        Sent::Conflict(id) => {
            api.count_call(&route, EffectCall::Repeated);
            Ok(told("conflict", id))
        }
        Sent::NoDestination => Err(Problem::not_found(format!(
            "there is no destination `{0}`; add [destinations.{0}] to the configuration of the \
             server",
            message.destination
        ))),
        Sent::LeaseLost => Err(api.lost(&route, delivery).await?),
    }
}

fn message(said: Send) -> Result<Message, Problem> {
    if !is_name(&said.destination) {
        return Err(Problem::invalid(
            "`destination` must be the name of one in the configuration, as in \
             [destinations.mailer]: up to 63 lower-case letters, digits and hyphens",
        ));
    }
    let (payload, usual_type) = payload(said.payload.as_deref(), said.payload_base64.as_deref())?;
    if payload.len() > MESSAGE_BYTES {
        return Err(Problem::part_too_large(&format!(
            "a payload has at most {MESSAGE_BYTES} bytes, not {}; keep what is larger elsewhere, \
             and send where",
            payload.len()
        )));
    }
    Ok(Message {
        destination: said.destination,
        key: key("key", &said.key)?,
        group: said.group.as_deref().map(|group| key("group", group)).transpose()?,
        content_type: content_type(said.content_type, usual_type)?,
        payload,
    })
}

/// What is sent, and what it usually is.
fn payload(
    json: Option<&RawValue>,
    base64: Option<&str>,
) -> Result<(Bytes, &'static str), Problem> {
    match (json, base64) {
        (Some(json), None) => Ok((json::compact(json.get()).into(), "application/json")),
        (None, Some(text)) => {
            let decoded = STANDARD.decode(text).map_err(|error| {
                Problem::invalid(format!("`payload_base64` is not padded base64: {error}"))
            })?;
            Ok((decoded.into(), "application/octet-stream"))
        }
        (None, None) => Err(Problem::invalid(
            "what to send is missing: `payload` with JSON, or `payload_base64` with anything",
        )),
        (Some(_), Some(_)) => {
            Err(Problem::invalid("`payload` and `payload_base64` exclude each other"))
        }
    }
}

/// It is sent as a header, so it must be fit for one.
fn content_type(said: Option<String>, usual: &str) -> Result<String, Problem> {
    let Some(said) = said else { return Ok(usual.to_owned()) };
    let is_plain = said.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let is_one = said
        .split_once('/')
        .is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty() && said.trim() == said);
    if !is_plain || !is_one || said.len() > CONTENT_TYPE_BYTES {
        return Err(Problem::invalid(format!(
            "`content_type` must be such as `application/json`, of at most {CONTENT_TYPE_BYTES} \
             plain characters"
        )));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_is_fit_for_a_header() {
        let read = |said: &str| content_type(Some(said.to_owned()), "a/b");
        assert_eq!(content_type(None, "a/b").unwrap(), "a/b");
        assert_eq!(read("text/plain; charset=utf-8").unwrap(), "text/plain; charset=utf-8");
        let long = format!("text/{}", "x".repeat(CONTENT_TYPE_BYTES));
        for wrong in
            ["", "json", "/", "a/", "/b", "a/b\r\nx: y", " a/b", "a/b\n", "a/b\t", "ü/b", &long]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn null_is_a_payload() {
        let read = |text: &str| serde_json::from_str::<Send>(text).unwrap().payload;
        let said =
            |payload: &str| format!(r#"{{"lease":"1.1","destination":"mail","key":"k"{payload}}}"#);
        assert_eq!(read(&said(r#","payload":null"#)).unwrap().get(), "null");
        assert!(read(&said("")).is_none());
    }
}
