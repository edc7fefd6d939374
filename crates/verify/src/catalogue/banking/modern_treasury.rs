//! Modern Treasury: HMAC-SHA256 over the body, hex, in `X-Signature`.
//!
//! <https://docs.moderntreasury.com/platform/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "modern-treasury",
    title: "Modern Treasury",
    docs: "https://docs.moderntreasury.com/platform/docs/webhooks",
    schemes: items![hmac(in_header("x-signature")).scheme()],
    // `X-Webhook-ID` is not signed, and nobody says that a retry keeps it.
    identity: items![Identity::Digest],
    event_type: items![kind_with(header("x-topic"), json("/event")), kind(json("/event"))],
    object: items![json("/data/id")],
    version: items![version(json("/data/updated_at"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "Developers, Webhooks, your endpoint, Webhook key.",
    sample_type: "payment_order.completed",
    sample_body: r#"{"data":{"object":"payment_order","status":"completed","live_mode":false}}"#,
    sample_object: "8c27b0d1-0c9f-44ad-aa0c-2d1a0a2c2a83",
    ..BLANK
}
.provider();
