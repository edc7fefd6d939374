//! Sanity: HMAC-SHA256 over `{timestamp}.{body}`, base64url, in `sanity-webhook-signature`.
//!
//! <https://www.sanity.io/docs/content-lake/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "sanity",
    title: "Sanity",
    docs: "https://www.sanity.io/docs/content-lake/webhooks",
    // The SDK checks no age, and no word says that retries are signed again.
    schemes: items![
        hmac(label("sanity-webhook-signature", ",", "v1"))
            .encoding(Encoding::Base64Url)
            .undated(label("sanity-webhook-signature", ",", "t"), MILLISECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(header("idempotency-key")), Identity::Digest],
    event_type: items![kind(header("sanity-operation"))],
    object: items![header("sanity-document-id"), json("/_id")],
    version: items![version(json("/_updatedAt"), Unit::Iso8601)],
    twins: deliver(
        "You choose what a body says: two changes read the same where it leaves out what changed.",
    ),
    types_share_body: Some(
        "The operation is a header: create, update and delete of a document may have one body.",
    ),
    retry: "Two retries, 30 s apart, after 429 and 5xx.",
    retry_hours: 1,
    find_secret: "sanity.io/manage, API, Webhooks, your webhook, Secret.",
    notes: "The projection of the webhook decides what is in the body. Let it hold _rev or \
         _updatedAt: two changes with the same body, byte for byte, look like one that was \
         sent twice. Sanity waits 30 s.",
    sample_type: "update",
    sample_headers: items![(text("user-agent"), text("Sanity.io webhook delivery"))],
    sample_body: r#"{"_type":"post","_rev":"sample"}"#,
    sample_object: "resume",
    ..BLANK
}
.provider();
