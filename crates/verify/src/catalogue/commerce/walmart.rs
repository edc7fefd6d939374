//! Walmart Marketplace: HMAC-SHA256 over method, path, time and the SHA-256 of the body, base64,
//! in `WM_SEC.SIGNATURE`.
//!
//! <https://developer.walmart.com/us-marketplace/docs/security-and-authenticity>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "walmart",
    title: "Walmart Marketplace",
    experimental: true,
    docs: "https://developer.walmart.com/us-marketplace/docs/security-and-authenticity",
    schemes: items![
        hmac(in_header("wm_sec.signature"))
            .base64()
            .stamp(in_header("wm_sec.timestamp"), SECONDS, 300)
            .over(list![
                Part::Method,
                lit("\n"),
                Part::PathAndQuery,
                lit("\n"),
                TIME,
                lit("\n"),
                Part::BodyHash { algorithm: Algorithm::Sha256, encoding: Encoding::Hex }
            ])
            .scheme()
    ],
    identity: items![id(json("/source/eventId")), Identity::Digest],
    event_type: items![kind(json("/source/eventType"))],
    object: items![json("/payload/purchaseOrderId")],
    version: items![version(json("/source/eventTime"), Unit::Iso8601)],
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "The webhook secret that you and Walmart share.",
    notes: "Only performance webhooks are signed so. The path is signed, so Oncebox must know \
         the public URL exactly as set at Walmart. Walmart waits 3 s.",
    sample_type: "PO_CREATED",
    sample_body: r#"{"payload":{"partnerId":"10000000000"}}"#,
    sample_object: "1234567890123",
    ..BLANK
}
.provider();
