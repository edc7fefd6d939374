//! FastSpring: HMAC-SHA256 over the body, base64, in `X-FS-Signature`.
//!
//! <https://developer.fastspring.com/reference/message-security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "fastspring",
    title: "FastSpring",
    docs: "https://developer.fastspring.com/reference/message-security",
    schemes: items![hmac(in_header("x-fs-signature")).base64().scheme()],
    batches: items![batch("/events")],
    identity: items![id(item("/id"))],
    event_type: items![kind(item("/type"))],
    object: items![item("/data/id")],
    version: items![version(item("/created"), Unit::Milliseconds)],
    // With 202 FastSpring looks for the ids of the events that were processed.
    answer: Some(Answer::Status(200)),
    retry: "Not confirmed: until it hears 200.",
    recovery: "GET /events/unprocessed lists what was not acknowledged.",
    find_secret: "Developer Tools, Webhooks, your URL endpoint, HMAC SHA256 secret: the one \
         you chose there.",
    notes: "A retry by hand gets new ids.",
    sample_type: "order.completed",
    sample_body: r#"{"events":[{"processed":false,"live":false,"data":{"currency":"USD",
        "total":20}}]}"#,
    sample_object: "NP1bFTAfSpOWiwdBoZyFyw",
    ..BLANK
}
.provider();
