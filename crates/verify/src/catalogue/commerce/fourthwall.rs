//! Fourthwall: HMAC-SHA256 over the body, base64, in `X-Fourthwall-Hmac-SHA256`.
//!
//! <https://docs.fourthwall.com/webhooks/signature-verification>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "fourthwall",
    title: "Fourthwall",
    docs: "https://docs.fourthwall.com/webhooks/signature-verification",
    // Webhooks of apps use the second name.
    schemes: items![
        hmac(Place::AnyOf(list![
            text("x-fourthwall-hmac-sha256"),
            text("x-fourthwall-hmac-apps-sha256")
        ]))
        .base64()
        .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "Not documented; expect retries.",
    find_secret: "Settings, For developers, your webhook: the HMAC secret.",
    sample_type: "ORDER_PLACED",
    sample_body: r#"{"testMode":true,"apiVersion":"V1","data":{"status":"CONFIRMED"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
