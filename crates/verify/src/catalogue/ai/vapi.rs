//! Vapi: a secret sent as it is, in `x-vapi-secret`.
//!
//! <https://docs.vapi.ai/server-url/server-authentication>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "vapi",
    title: "Vapi",
    docs: "https://docs.vapi.ai/server-url/server-authentication",
    experimental: true,
    schemes: items![token("x-vapi-secret")],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/message/type"))],
    object: items![json("/message/call/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The secret of the server URL: the one you chose there.",
    notes: "Only the plain secret is understood, not the HMAC that Vapi can be set to. It proves \
         who sent a request, not what was sent. Vapi reads the answers to requests for an \
         assistant or a tool: send those elsewhere.",
    sample_type: "end-of-call-report",
    sample_body: r#"{"message":{"endedReason":"customer-ended-call"}}"#,
    sample_object: "call_sample",
    ..BLANK
}
.provider();
