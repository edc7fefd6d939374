//! Courier: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `courier-signature`.
//!
//! <https://www.courier.com/docs/platform/workspaces/outbound-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "courier",
    title: "Courier",
    docs: "https://www.courier.com/docs/platform/workspaces/outbound-webhooks",
    // Whether retries are signed again is not known, so any age passes.
    schemes: items![
        hmac(label("courier-signature", ",", "signature"))
            .undated(label("courier-signature", ",", "t"), MILLISECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Outbound webhooks, your webhook, Signing secret.",
    notes: "The scheme was read in one catalogue only, not at Courier.",
    sample_type: "message:updated",
    sample_body: r#"{"data":{"status":"DELIVERED"}}"#,
    sample_object: "1-66d1a2b3-sample",
    ..BLANK
}
.provider();
