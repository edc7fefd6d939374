//! Bridge (bridgeapi.io): HMAC-SHA256 over the body, upper-case hex after `v1=`, in
//! `BridgeApi-Signature`.
//!
//! <https://docs.bridgeapi.io/docs/secure-your-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "bridge-api",
    title: "Bridge (bridgeapi.io)",
    docs: "https://docs.bridgeapi.io/docs/secure-your-webhooks",
    // Two signatures for a day while a secret is rotated; either may match.
    schemes: items![
        hmac(label("bridgeapi-signature", ",", "v1")).encoding(Encoding::HexUpper).scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "Not confirmed: growing pauses for a day or two.",
    retry_hours: 48,
    find_secret: "Dashboard, your application, Webhooks, your webhook, Secret.",
    sample_type: "item.refreshed",
    sample_body: r#"{"content":{"item_id":1234,"status_code":0}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
