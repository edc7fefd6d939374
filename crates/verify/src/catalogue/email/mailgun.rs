//! Mailgun: HMAC-SHA256 over a timestamp and a token, hex, inside the JSON body.
//!
//! <https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mailgun",
    title: "Mailgun",
    docs: "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
    // Mailgun retries for eight hours and does not say whether it signs again, so a window of
    // minutes could refuse every retry. A day lets all of them in.
    schemes: items![
        hmac(Place::Json(text("/signature/signature")))
            .stamp(Place::Json(text("/signature/timestamp")), SECONDS, 86_400)
            .over(list![
                Part::Json(text("/signature/timestamp")),
                Part::Json(text("/signature/token")),
            ])
            .scheme()
    ],
    identity: items![id(json("/event-data/id"))],
    event_type: items![kind_with(json("/event-data/event"), json("/event-data/severity"))],
    object: items![json("/event-data/message/headers/message-id")],
    version: items![version(json("/event-data/timestamp"), Unit::Seconds)],
    volatile: items![text("/signature")],
    // Only the time and a token that is never used again, so they stand for the event.
    guard: Guard::Signed,
    // Mailgun retries after anything but 200; 406 would stop it.
    answer: Some(Answer::Status(200)),
    twins: hold("Mailgun makes a signature for one event: a second event with it is a copy."),
    retry: "Seven retries over eight hours.",
    retry_hours: 8,
    recovery: "The Logs API lists events; the older GET /v3/{domain}/events is deprecated and keeps \
         three days or more, by plan.",
    find_secret: "Sending, Webhooks, HTTP webhook signing key.",
    notes: "The signature covers a token, not the event. Oncebox lets each token in for one event, \
         but whoever holds a request back within a day can send another in its place: read the \
         event again by its id before acting on it.",
    sample_type: "delivered",
        sample_headers: items![(text("user-agent"), text("Go-http-client/1.1"))],
        sample_body: r#"{"event-data":{"log-level":"info","recipient":"alice@example.com",
                "recipient-domain":"example.com"}}"#,
        sample_object: "20130503182626.18666.16540@sample.mailgun.org",
    ..BLANK
}
.provider();
