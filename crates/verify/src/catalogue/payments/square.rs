//! Square: HMAC-SHA256 over the URL and the body, base64, in `x-square-hmacsha256-signature`.
//!
//! <https://developer.squareup.com/docs/webhooks/step3validate>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "square",
    title: "Square",
    docs: "https://developer.squareup.com/docs/webhooks/step3validate",
    // The older `x-square-signature` is SHA-1 and never looked at.
    schemes: items![
        hmac(in_header("x-square-hmacsha256-signature"))
            .base64()
            .over(list![Part::Url, BODY])
            .scheme()
    ],
    identity: items![id(json("/event_id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    retry: "Growing pauses for up to 24 hours; then the subscription may be disabled.",
    retry_hours: 24,
    recovery: "POST /v2/events searches 28 days, once PUT /v2/events/enable was called.",
    find_secret: "Developer Console, your application, Webhooks, your subscription, Signature \
         key.",
    notes: "The URL is signed, so Oncebox must know the public URL exactly as set at Square. \
         Square waits 10 s.",
    sample_type: "payment.updated",
    sample_headers: items![(text("square-environment"), text("Sandbox"))],
    sample_body: r#"{"merchant_id":"MLEFBHHSJGVHD","data":{"type":"payment",
        "object":{"payment":{"status":"COMPLETED","version":1,
        "amount_money":{"amount":100,"currency":"USD"}}}}}"#,
    sample_object: "hYy9pRFVxpDsO1FB05SunFWUe9JZY",
    ..BLANK
}
.provider();
