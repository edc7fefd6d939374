//! TrueLayer: a detached JWS (ES512) over method, path, named headers and body in `Tl-Signature`.
//!
//! <https://docs.truelayer.com/docs/signing-your-requests>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "truelayer",
    title: "TrueLayer",
    docs: "https://docs.truelayer.com/docs/signing-your-requests",
    // The token names the key set; only these two are believed.
    schemes: items![
        jwt(
            "tl-signature",
            list![JwsAlgorithm::Es512],
            JwsKeys::Jwks(list![
                text("https://webhooks.truelayer.com/.well-known/jwks"),
                text("https://webhooks.truelayer-sandbox.com/.well-known/jwks"),
            ])
        )
        .over(JwsPayload::TrueLayer)
        .scheme()
    ],
    settings: items![optional(
        "public_key",
        "TrueLayer's public key in PEM, if it shall not be fetched."
    )],
    identity: items![id(json("/event_id"))],
    event_type: items![kind(json("/type")), kind(json("/event_type"))],
    object: items![
        json("/payment_id"),
        json("/payout_id"),
        json("/refund_id"),
        json("/mandate_id"),
        json("/transaction_id"),
    ],
    retry: "Not documented in detail; with growing pauses for up to three days.",
    retry_hours: 72,
    find_secret: "There is none: the keys of production and sandbox are fetched from TrueLayer.",
    notes: "The path is signed as the Console has it, so set `public_url` behind a proxy that \
         changes it. The time in X-Tl-Webhook-Timestamp is signed and kept, but not limited: \
         whether retries get a new one is not documented.",
    sample_type: "payment_executed",
    sample_body: r#"{"event_version":1,"payment_method":{"type":"bank_transfer"},
        "executed_at":"2021-12-25T15:00:00.000Z"}"#,
    sample_object: "60c60a60-ed13-4847-a816-0a5a25ba1ce7",
    ..BLANK
}
.provider();
