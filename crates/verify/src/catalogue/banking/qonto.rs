//! Qonto: HMAC-SHA256 over `{t}.{body}`, hex, in `X-Qonto-Signature`.
//!
//! <https://docs.qonto.com/api-reference/business-api/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "qonto",
    title: "Qonto",
    docs: "https://docs.qonto.com/api-reference/business-api/webhooks",
    // Whether a retry is signed anew is not known, so no age is refused.
    schemes: items![
        hmac(label("x-qonto-signature", ",", "v1"))
            .undated(label("x-qonto-signature", ",", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    retry: "Not documented; expect retries.",
    find_secret: "The API answers with the secret when the webhook subscription is made.",
    notes: "Qonto waits 1 s. Where the type of an event is, is not known.",
    sample_type: "unknown",
    sample_object: "",
    ..BLANK
}
.provider();
