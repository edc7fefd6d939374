//! Sumsub: HMAC-SHA256 over the body, hex, in `X-Payload-Digest`.
//!
//! <https://docs.sumsub.com/docs/webhook-manager>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "sumsub",
    title: "Sumsub",
    docs: "https://docs.sumsub.com/docs/webhook-manager",
    // `X-Payload-Digest-Alg` names the algorithm; a request must not choose it.
    schemes: items![hmac(in_header("x-payload-digest")).scheme()],
    // `/correlationId` may be shared by what one step caused.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/applicantId")],
    version: items![version(json("/createdAtMs"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "Dev space, Webhooks, your webhook, Secret key.",
    notes: "Choose HMAC_SHA256_HEX as the digest of the webhook: the others are not read. The \
         scheme was not read again at Sumsub.",
    sample_type: "applicantReviewed",
    sample_body: r#"{"reviewStatus":"completed","reviewResult":{"reviewAnswer":"GREEN"}}"#,
    sample_object: "5cb56e8e0a975a35f333cb83",
    ..BLANK
}
.provider();
