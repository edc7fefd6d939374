//! The answers a sender can get, and nothing else.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use oncebox::limits;
use oncebox::receipt::{Oddity, ReceiptId};
use oncebox_verify::{Answer as Wanted, Reply};

use crate::awaited::Settled;

/// An answer on its way to a sender.
pub type Answer = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

fn error(status: StatusCode, code: &'static str) -> Answer {
    json(status, format!("{{\"error\":\"{code}\"}}"))
}

pub(super) fn accepted(receipt: ReceiptId) -> Answer {
    json(StatusCode::ACCEPTED, format!("{{\"status\":\"accepted\",\"receipt\":\"{receipt}\"}}"))
}

/// To a sender of authentic content that looks odd: it is a receipt of its own.
pub(super) fn odd(receipt: ReceiptId, oddity: Oddity) -> Answer {
    let body =
        format!("{{\"status\":\"accepted\",\"receipt\":\"{receipt}\",\"note\":\"{oddity}\"}}");
    json(StatusCode::ACCEPTED, body)
}

pub(super) fn duplicate(receipt: ReceiptId) -> Answer {
    json(StatusCode::OK, format!("{{\"status\":\"duplicate\",\"receipt\":\"{receipt}\"}}"))
}

/// To a sender that was to hear how its event ended.
pub(super) fn settled(settled: Settled, receipt: ReceiptId) -> Answer {
    let word = settled.as_str();
    match settled {
        Settled::Processed | Settled::Skipped | Settled::Dead | Settled::Retrying => {
            json(StatusCode::OK, format!("{{\"status\":\"{word}\",\"receipt\":\"{receipt}\"}}"))
        }
        Settled::NotYet => not_processed(),
    }
}

/// To a sender whose batch is kept and not yet processed, where it was to hear that.
pub(super) fn not_processed() -> Answer {
    let error = error(StatusCode::SERVICE_UNAVAILABLE, Settled::NotYet.as_str());
    retry_after(error, limits::RETRY_AFTER_SECS)
}

/// To a sender of several events, all of which are kept.
pub(super) fn batch(has_new: bool, receipts: &[ReceiptId]) -> Answer {
    let (status, word) = match has_new {
        true => (StatusCode::ACCEPTED, "accepted"),
        false => (StatusCode::OK, "duplicate"),
    };
    let mut body = format!("{{\"status\":\"{word}\",\"receipts\":[");
    for (number, receipt) in receipts.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(body, "{comma}\"{receipt}\"");
    }
    body.push_str("]}");
    json(status, body)
}

pub(super) fn ignored() -> Answer {
    json(StatusCode::OK, "{\"status\":\"ignored\"}")
}

/// An answer in the form in which its provider takes it for a success.
pub(super) fn as_wanted(mut plain: Answer, wanted: &Wanted) -> Answer {
    match wanted {
        Wanted::Status(status) => {
            *plain.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::OK);
            plain
        }
        Wanted::Silent(status) => {
            *plain.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::OK);
            silenced(plain)
        }
        Wanted::Exactly { status, content_type, body } => reply(&Reply {
            status: *status,
            content_type,
            headers: Vec::new(),
            body: (*body).to_owned(),
        }),
    }
}

/// An answer without a word.
pub(super) fn silenced(mut answer: Answer) -> Answer {
    *answer.body_mut() = Full::default();
    answer.headers_mut().remove(CONTENT_TYPE);
    answer
}

/// What a provider wants to hear instead. It may hold words of whoever asked, so no browser is to
/// take it for anything but what it says it is.
pub(super) fn reply(reply: &Reply) -> Answer {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let mut answer = Response::new(Full::new(Bytes::from(reply.body.clone())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !reply.content_type.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    }
    for (name, value) in &reply.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    answer
}

pub(super) fn malformed(detail: &'static str) -> Answer {
    let body = format!("{{\"error\":\"malformed_payload\",\"detail\":\"{detail}\"}}");
    json(StatusCode::BAD_REQUEST, body)
}

pub(super) fn incomplete() -> Answer {
    closing(error(StatusCode::BAD_REQUEST, "incomplete_body"))
}

/// The same for every reason: why a signature was not believed is for the operator.
pub(super) fn invalid_signature() -> Answer {
    error(StatusCode::UNAUTHORIZED, "invalid_signature")
}

pub(super) fn not_found() -> Answer {
    error(StatusCode::NOT_FOUND, "not_found")
}

/// Says which methods the source takes.
pub(super) fn method_not_allowed(allowed: &str) -> Answer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    let allowed = HeaderValue::from_str(allowed);
    answer.headers_mut().insert(ALLOW, allowed.unwrap_or(HeaderValue::from_static("POST")));
    answer
}

pub(super) fn too_slow() -> Answer {
    closing(error(StatusCode::REQUEST_TIMEOUT, "body_too_slow"))
}

pub(super) fn too_large() -> Answer {
    closing(error(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"))
}

pub(super) fn encoded() -> Answer {
    error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_encoding_not_supported")
}

pub(super) fn too_many_failures(after_secs: u64) -> Answer {
    let answer = error(StatusCode::TOO_MANY_REQUESTS, "too_many_failed_signatures");
    retry_after(answer, after_secs)
}

pub(super) fn unavailable() -> Answer {
    let answer = error(StatusCode::SERVICE_UNAVAILABLE, "unavailable");
    retry_after(answer, limits::RETRY_AFTER_SECS)
}

fn retry_after(mut answer: Answer, seconds: u64) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    answer
}

/// An answer after which nothing more is read from the connection.
pub(super) fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
