//! Orb: HMAC-SHA256 over `v1:{time}:{body}`, hex after `v1=`, in `X-Orb-Signature`.
//!
//! <https://docs.withorb.com/integrations-and-exports/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "orb",
    title: "Orb",
    docs: "https://docs.withorb.com/integrations-and-exports/webhooks",
    // The time is written without a zone and means UTC.
    schemes: items![
        hmac(label("x-orb-signature", " ", "v1"))
            .stamp(in_header("x-orb-timestamp"), ISO, 300)
            .over(list![lit("v1:"), TIME, lit(":"), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "Developers, Webhooks, your endpoint, Signing secret.",
    sample_type: "invoice.issued",
    sample_body: r#"{"details":{},"properties":{}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
