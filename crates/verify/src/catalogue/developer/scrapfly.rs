//! Scrapfly: HMAC-SHA256 over the body, hex, upper-case or lower-case in two headers.
//!
//! <https://scrapfly.io/docs/scrape-api/webhook>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "scrapfly",
    title: "Scrapfly",
    docs: "https://scrapfly.io/docs/scrape-api/webhook",
    schemes: items![
        hmac(in_header("x-scrapfly-webhook-signature")).encoding(Encoding::HexUpper).scheme(),
        hmac(in_header("x-scrapfly-webhook-signature-lowercase")).scheme()
    ],
    // Whether a retry keeps `X-Scrapfly-Webhook-Job-Id` is not known.
    identity: items![Identity::Digest],
    event_type: items![kind(header("x-scrapfly-webhook-resource-type"))],
    retry: "Not confirmed; retries from 30 s to a day apart are spoken of, and 100 failures \
         disable the webhook.",
    find_secret: "Dashboard, Webhooks, your webhook, Signing secret.",
    notes: "The payload repeats the secret: guard the stored bodies. The scheme was read in one \
         catalogue only, not at Scrapfly.",
    sample_type: "scrape",
    sample_body: r#"{"result":{"status":"DONE"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
