//! Google Gemini API: Standard Webhooks under `webhook-*`.
//!
//! <https://ai.google.dev/gemini-api/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "google-gemini",
    title: "Google Gemini API",
    docs: "https://ai.google.dev/gemini-api/docs/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    retry: "With growing pauses for up to 24 hours.",
    retry_hours: 24,
    find_secret: "The answer to creating the webhook, which shows the signing secret once.",
    notes: "Static webhooks only. Dynamic ones, which are set per request, are signed with a key \
         that is the same for every customer of Google, and any of them may send one to your URL: \
         they prove too little.",
    sample_type: "batch.succeeded",
    sample_body: r#"{"version":"v1","data":{"output_file_uri":"gs://sample/out.jsonl"}}"#,
    sample_object: "batches/123456",
    ..BLANK
}
.provider();
