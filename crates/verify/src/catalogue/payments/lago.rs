//! Lago: HMAC-SHA256 over the body, base64, in `X-Lago-Signature`.
//!
//! <https://docs.getlago.com/guide/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "lago",
    title: "Lago",
    docs: "https://docs.getlago.com/guide/webhooks",
    experimental: true,
    schemes: items![hmac(in_header("x-lago-signature")).base64().scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/webhook_type"))],
    retry: "Not documented; expect retries.",
    find_secret: "Developers, Webhooks: the HMAC key of the organization.",
    notes: "Choose HMAC as the signature of the webhook: its JWT form is not read. The scheme \
         was not read again at Lago.",
    sample_type: "invoice.created",
    sample_body: r#"{"object_type":"invoice",
        "invoice":{"lago_id":"1a901a90-1a90-1a90-1a90-1a901a901a90"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
