//! Mailgun: HMAC-SHA256 over a timestamp and a token, hex, inside the JSON body.
//!
//! <https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks>

use super::{id, json, kind_with, text, version};
use crate::provider::{
    Algorithm, Answer, Encoding, Guard, Hmac, KeyEncoding, Part, Place, Provider, Sample, Scheme,
    Stamp, TimeFormat, Unit,
};

pub(super) static MAILGUN: Provider = Provider {
    name: text("mailgun"),
    title: text("Mailgun"),
    docs: text(
        "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
    ),
    schemes: list![Scheme::Hmac(Hmac {
        algorithm: Algorithm::Sha256,
        signature: Place::Json(text("/signature/signature")),
        prefix: text(""),
        separator: None,
        encoding: Encoding::Hex,
        // Mailgun retries for eight hours and does not say whether it signs again, so
        // a window of minutes could refuse every retry. A day lets all of them in.
        timestamp: Some(Stamp {
            place: Place::Json(text("/signature/timestamp")),
            format: TimeFormat::Seconds,
            tolerance_secs: 86_400,
        }),
        signed: list![
            Part::Json(text("/signature/timestamp")),
            Part::Json(text("/signature/token")),
        ],
        key: KeyEncoding::Text,
    })],
    identity: list![id(json("/event-data/id"))],
    event_type: list![kind_with(json("/event-data/event"), json("/event-data/severity"))],
    object: list![json("/event-data/message/headers/message-id")],
    version: list![version(json("/event-data/timestamp"), Unit::Seconds)],
    volatile: list![text("/signature")],
    // Only the time and a token that is never used again, so they stand for the event.
    guard: Guard::Signed,
    form_payload: None,
    handshake: None,
    // Mailgun retries after anything but 200; 406 would stop it.
    answer: Some(Answer::Status(200)),
    retry: text("Seven retries over eight hours."),
    find_secret: text("Sending, Webhooks, HTTP webhook signing key."),
    notes: text(
        "The signature covers a token, not the event. Oncebox lets each token in for one event, \
         but whoever holds a request back within a day can send another in its place: read the \
         event again by its id before acting on it.",
    ),
    sample_type: text("delivered"),
    sample: Sample {
        headers: list![(text("user-agent"), text("Go-http-client/1.1"))],
        body: text(
            r#"{"event-data":{"log-level":"info","recipient":"alice@example.com",
                "recipient-domain":"example.com"}}"#,
        ),
        object: text("20130503182626.18666.16540@sample.mailgun.org"),
        form: false,
    },
};
