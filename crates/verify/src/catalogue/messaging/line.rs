//! LINE: HMAC-SHA256 over the body, base64, in `X-Line-Signature`.
//!
//! <https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "line",
    title: "LINE",
    docs: "https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/",
    schemes: items![hmac(in_header("x-line-signature")).base64().scheme()],
    // Empty where LINE only tries the URL.
    batches: items![batch("/events")],
    identity: items![id(item("/webhookEventId"))],
    event_type: items![kind(item("/type"))],
    object: items![item("/message/id")],
    version: items![version(item("/timestamp"), Unit::Milliseconds)],
    // Whether it was sent before.
    volatile: items![text("/deliveryContext")],
    answer: Some(Answer::Status(200)),
    retry: "Only where redelivery is switched on for the channel.",
    find_secret: "LINE Developers Console, your channel, Basic settings, Channel secret.",
    notes: "LINE waits 2 s.",
    sample_type: "message",
    sample_body: r#"{"destination":"xxxxxxxxxx","events":[{"mode":"active",
        "source":{"type":"user","userId":"U4af4980629"},"message":{"type":"text",
        "text":"Hello, world"},"deliveryContext":{"isRedelivery":false}}]}"#,
    sample_object: "444573844083572737",
    ..BLANK
}
.provider();
