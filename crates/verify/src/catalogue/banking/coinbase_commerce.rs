//! Coinbase Commerce: HMAC-SHA256 over the body, hex, in `X-CC-Webhook-Signature`.
//!
//! <https://docs.cdp.coinbase.com/commerce/webhooks/security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "coinbase-commerce",
    title: "Coinbase Commerce",
    docs: "https://docs.cdp.coinbase.com/commerce/webhooks/security",
    schemes: items![hmac(in_header("x-cc-webhook-signature")).scheme()],
    identity: items![id(json("/event/id"))],
    event_type: items![kind(json("/event/type"))],
    object: items![json("/event/data/id"), json("/event/data/code")],
    version: items![version(json("/event/created_at"), Unit::Iso8601)],
    // The envelope tells of the attempt.
    volatile: items![text("/attempt_number"), text("/scheduled_for")],
    answer: Some(Answer::Status(200)),
    retry: "Not confirmed: growing pauses for up to three days.",
    retry_hours: 72,
    recovery: "GET /api/v1/webhook-events lists events, GET /api/v1/webhook-deliveries/event/{id} \
         their deliveries.",
    find_secret: "Settings, Notifications, Webhook subscriptions, Shared secret.",
    sample_type: "charge:confirmed",
    sample_body: r#"{"id":1,"attempt_number":1,"event":{"resource":"event",
        "api_version":"2018-03-22","data":{"code":"66BEOV2A",
        "name":"A sample charge"}}}"#,
    sample_object: "f765421f-2000-4ec0-8cc5-1cbd0a1d1a5c",
    ..BLANK
}
.provider();
