//! Oracle Commerce: HMAC-SHA512 over the body, base64, in `X-Oracle-CC-WebHook-Signature`.
//!
//! <https://docs.oracle.com/en/cloud/saas/cx-commerce/ccdev/secure-webhooks.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "oracle-commerce",
    title: "Oracle Commerce",
    docs: "https://docs.oracle.com/en/cloud/saas/cx-commerce/ccdev/secure-webhooks.html",
    schemes: items![hmac(in_header("x-oracle-cc-webhook-signature")).sha512().base64().scheme()],
    identity: items![Identity::Digest],
    retry: "Not documented; expect retries.",
    find_secret: "Settings, Web APIs, Webhook, your webhook: the secret key.",
    notes: "Where the type of an event is, is not known.",
    sample_type: "unknown",
    sample_body: r#"{"site":{"siteURL":"https://shop.example.com"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
