//! Paddle: HMAC-SHA256 over `{ts}:{body}`, hex, in `Paddle-Signature`.
//!
//! <https://developer.paddle.com/webhooks/signature-verification>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "paddle",
    title: "Paddle",
    docs: "https://developer.paddle.com/webhooks/signature-verification",
    // Several `h1` while a secret is rotated; any may match. The SDKs allow 5 s, so each attempt
    // is signed anew.
    schemes: items![
        hmac(label("paddle-signature", ";", "h1"))
            .stamp(label("paddle-signature", ";", "ts"), SECONDS, 5)
            .over(list![TIME, lit(":"), BODY])
            .scheme()
    ],
    // `/notification_id` is another one for each destination.
    identity: items![id(json("/event_id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/data/id")],
    version: items![version(json("/occurred_at"), Unit::Iso8601)],
    answer: Some(Answer::Status(200)),
    retry: "Live: 60 tries over three days; sandbox: three over 15 minutes.",
    retry_hours: 72,
    recovery: "GET /notifications lists 90 days, POST /notifications/{id}/replay sends one again.",
    find_secret: "Developer tools, Notifications, your destination, Secret key \
         (pdl_ntfset_...).",
    notes: "Paddle waits 5 s, and the signature is good for 5 s: keep the clock of the host \
         right. Paddle Classic signs otherwise and is not covered.",
    sample_type: "transaction.completed",
    sample_body: r#"{"notification_id":"ntf_01hv8x2acma2gz7he8kg47zkxr",
        "data":{"status":"completed","customer_id":"ctm_01hv6y1jedq4p1n0yqn5ba3ky4",
        "currency_code":"EUR"}}"#,
    sample_object: "txn_01hv8wptq8987qeep44cyrewp9",
    ..BLANK
}
.provider();
