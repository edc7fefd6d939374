//! Qonto: HMAC-SHA256 over `{t}.{body}`, hex, in `X-Qonto-Signature`.
//!
//! <https://docs.qonto.com/api-reference/business-api/webhooks/setup>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "qonto",
    title: "Qonto",
    docs: "https://docs.qonto.com/api-reference/business-api/webhooks/setup",
    // Whether a retry is signed anew is not known, so no age is refused.
    schemes: items![
        hmac(label("x-qonto-signature", ",", "v1"))
            .undated(label("x-qonto-signature", ",", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind_with(json("/type"), json("/data/event"))],
    object: items![json("/data/id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "The API answers with the secret when the webhook subscription is made.",
    notes: "Qonto waits 1 s.",
    sample_type: "v1/transactions.created",
    sample_body: r#"{"organization_id":"123e4567-e89b-12d3-a456-426614174000",
        "data":{"amount":50.01,"currency":"EUR","status":"completed"}}"#,
    sample_object: "123e4567-e89b-12d3-a456-426614174000",
    ..BLANK
}
.provider();
