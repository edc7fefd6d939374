//! Qonto (onboarding): HMAC-SHA256 over the body, hex, in `Qonto-SHA256-Signature`.
//!
//! <https://docs.qonto.com/api-reference/onboarding-api/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "qonto-onboarding",
    title: "Qonto (onboarding)",
    docs: "https://docs.qonto.com/api-reference/onboarding-api/webhooks",
    schemes: items![hmac(in_header("qonto-sha256-signature")).scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/resource_id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "The secret that you and Qonto agreed on for the webhook.",
    sample_type: "registrations.pending",
    sample_body: r#"{"resource_type":"registration"}"#,
    sample_object: "525817f7-93e8-4f31-a83d-20319778b4b0",
    ..BLANK
}
.provider();
