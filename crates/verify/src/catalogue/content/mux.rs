//! Mux: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `Mux-Signature`.
//!
//! <https://www.mux.com/docs/core/verify-webhook-signatures>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mux",
    title: "Mux",
    docs: "https://www.mux.com/docs/core/verify-webhook-signatures",
    schemes: items![
        hmac(label("mux-signature", ",", "v1"))
            .stamp(label("mux-signature", ",", "t"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![
        version(json("/data/updated_at"), Unit::Iso8601),
        version(json("/created_at"), Unit::Iso8601)
    ],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Webhooks, your webhook, Signing secret.",
    sample_type: "video.asset.ready",
    sample_body: r#"{"object":{"type":"asset"},"environment":{"name":"Production",
        "id":"j0863n"},"data":{"status":"ready","duration":23.83}}"#,
    sample_object: "0201p02fGKPE7MrbC269XRD7LpcHhrmbu0002",
    ..BLANK
}
.provider();
