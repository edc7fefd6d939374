//! Recharge: HMAC-SHA256 over `{t}.{body}`, hex, in `X-Recharge-Webhook-Signature`; before,
//! SHA-256 of secret and body.
//!
//! <https://docs.getrecharge.com/docs/webhooks-overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "recharge",
    title: "Recharge",
    docs: "https://docs.getrecharge.com/docs/webhooks-overview",
    // Recharge retries for 48 hours and gives its signatures as long. The older header is a plain
    // hash.
    schemes: items![
        hmac(label("x-recharge-webhook-signature", ",", "v1"))
            .stamp(label("x-recharge-webhook-signature", ",", "t"), SECONDS, 172_800)
            .over(list![TIME, lit("."), BODY])
            .scheme(),
        hmac(in_header("x-recharge-hmac-sha256"))
            .algorithm(Algorithm::Sha256)
            .over(list![Part::Secret, BODY])
            .scheme()
    ],
    // What is hashed after the secret can be lengthened without it, so that header counts only on
    // request.
    choice: Some(const { &strongest_of(items![way("v1", &[0]), way("legacy", &[1])]) }),
    identity: items![Identity::Digest],
    // The body is one object under the name of its kind.
    event_type: items![kind(Field::KeyBeside(list![]))],
    retry: "Not confirmed: 20 tries over 48 hours; then the webhook is deleted.",
    retry_hours: 48,
    find_secret: "Apps, API tokens, your token: the API client secret.",
    notes: "Recharge waits 5 s. The type is the kind of object; what happened to it is not \
         told. The older header, a plain hash without a time, counts only with \
         `scheme = \"legacy\"`.",
    sample_type: "subscription",
    sample_body: r#"{"subscription":{"id":1,"status":"active"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
