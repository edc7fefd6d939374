//! Cloudflare Stream: HMAC-SHA256 over `{time}.{body}`, hex, in `Webhook-Signature`.
//!
//! <https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cloudflare-stream",
    title: "Cloudflare Stream",
    docs: "https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/",
    // Whether retries are signed again is not known, so any age passes.
    schemes: items![
        hmac(label("webhook-signature", ",", "sig1"))
            .undated(label("webhook-signature", ",", "time"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![
        Identity::Joined(list![json("/uid"), json("/status/state"), json("/modified")]),
        Identity::Digest
    ],
    event_type: items![kind(json("/status/state"))],
    object: items![json("/uid")],
    version: items![version(json("/modified"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "PUT /accounts/{id}/stream/webhook of the Cloudflare API: the secret in its \
         answer.",
    notes: "Other providers use the same header in other ways; this one starts with time=.",
    sample_type: "ready",
    sample_body: r#"{"readyToStream":true,"status":{"pctComplete":"100"}}"#,
    sample_object: "dd5d531a12de0c724bd1275a3b2bc9c6",
    ..BLANK
}
.provider();
