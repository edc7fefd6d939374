//! Nylas: HMAC-SHA256 over the body, hex, in `X-Nylas-Signature`.
//!
//! <https://developer.nylas.com/docs/v3/notifications/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "nylas",
    title: "Nylas",
    docs: "https://developer.nylas.com/docs/v3/notifications/",
    schemes: items![hmac(in_header("x-nylas-signature")).scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/object/id")],
    version: items![version(json("/time"), Unit::Seconds)],
    // Counts the attempts.
    volatile: items![text("/webhook_delivery_attempt")],
    handshakes: items![
        asks(GET, Wants::Has(query("challenge"))).challenge(query("challenge")).says(ECHO)
    ],
    retry: "Two retries after passing errors; 95 % of errors in 15 minutes mark the webhook as \
         failing.",
    find_secret: "webhook_secret in the answer to the call that created the webhook.",
    notes: "Leave compressed delivery off: its signature covers the compressed bytes. Nylas \
         waits 10 s.",
    sample_type: "message.created",
    sample_body: r#"{"specversion":"1.0","source":"/google/emails/realtime",
        "webhook_delivery_attempt":1,"data":{"application_id":"sample",
        "object":{"object":"message","subject":"hello"}}}"#,
    sample_object: "18df4e3c4b6f9a2d",
    ..BLANK
}
.provider();
