//! Flutterwave: HMAC-SHA256 over the body, base64, in `flutterwave-signature`; or the static
//! `verif-hash`.
//!
//! <https://developer.flutterwave.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "flutterwave",
    title: "Flutterwave",
    docs: "https://developer.flutterwave.com/docs/webhooks",
    // Version 4 signs; version 3 only sends the secret hash.
    schemes: items![
        hmac(in_header("flutterwave-signature")).base64().scheme(),
        token("verif-hash")
    ],
    choice: Some(const { &learned_of(items![way("signature", &[0]), way("token", &[1])]) }),
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event")), kind(json("/type"))],
    object: items![json("/data/id")],
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "Dashboard, Settings, Webhooks, Secret hash: the one you chose there.",
    notes: "With version 3 the secret itself is sent and the body is not signed: read the \
         transaction again before acting.",
    sample_type: "charge.completed",
    sample_body: r#"{"data":{"amount":100,"currency":"NGN","status":"successful"}}"#,
    sample_object: "285959875",
    ..BLANK
}
.provider();
