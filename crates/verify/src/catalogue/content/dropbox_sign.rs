//! Dropbox Sign: HMAC-SHA256 over the time and the type of the event, hex, inside the body.
//!
//! <https://developers.hellosign.com/docs/events/walkthrough/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "dropbox-sign",
    title: "Dropbox Sign",
    docs: "https://developers.hellosign.com/docs/events/walkthrough/",
    // The time is that of the event, so retries keep it.
    schemes: items![
        hmac(Place::Json(text("/event/event_hash")))
            .undated(Place::Json(text("/event/event_time")), SECONDS)
            .over(list![
                Part::Json(text("/event/event_time")),
                Part::Json(text("/event/event_type"))
            ])
            .scheme()
    ],
    payload: Payload::Multipart("json"),
    // The hash alone is shared by all events of one type in one second.
    identity: items![
        Identity::Joined(list![
            json("/event/event_hash"),
            json("/signature_request/signature_request_id"),
            json("/event/event_metadata/related_signature_id")
        ]),
        Identity::Joined(list![
            json("/event/event_hash"),
            json("/signature_request/signature_request_id")
        ]),
        id(json("/event/event_hash"))
    ],
    event_type: items![kind(json("/event/event_type"))],
    object: items![json("/signature_request/signature_request_id")],
    version: items![version(json("/event/event_time"), Unit::Seconds)],
    // Only the time and the type, so they stand for the event.
    guard: Guard::Signed,
    // The answer must hold exactly these words.
    answer: Some(Answer::Exactly {
        status: 200,
        content_type: "text/plain",
        body: "Hello API Event Received",
    }),
    twins: hold(
        "Only the time in seconds and the type are signed: two events of one type in a second \
         cannot be told from a copy.",
    ),
    retry: "Up to six retries over about a day; ten failures in a row clear the callback of the \
         account.",
    retry_hours: 24,
    find_secret: "Settings, API, API key: the key that made the request, or that of the app.",
    notes: "The signature covers the time and the type, not the rest: read the signature request \
         again by its id before acting on it. A second event of the same type in the same \
         second is set aside as a twin; replay it if it is genuine. Dropbox Sign waits 30 s.",
    sample_type: "signature_request_signed",
    sample_body: r#"{"event":{"event_metadata":{"related_signature_id":"78caf2a1d01cd39c"}},
        "signature_request":{"title":"A sample","is_complete":false}}"#,
    sample_object: "fa5c8a0b0f492d768749333ad6fcc214c111e967",
    ..BLANK
}
.provider();
