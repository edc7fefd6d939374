//! Replicate: Standard Webhooks; the status of the prediction is the type.
//!
//! <https://replicate.com/docs/topics/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "replicate",
    title: "Replicate",
    docs: "https://replicate.com/docs/topics/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/status"))],
    object: items![json("/id")],
    version: items![
        version(json("/completed_at"), Unit::Iso8601),
        version(json("/started_at"), Unit::Iso8601)
    ],
    retry: "Retries the final webhook of a prediction, not those in between.",
    find_secret: "GET /v1/webhooks/default/secret of the Replicate API.",
    notes: "Its SDK checks no age; we allow 300 s.",
    sample_type: "succeeded",
    sample_body: r#"{"version":"sample","input":{"prompt":"hello"},"output":null}"#,
    sample_object: "ufawqhfynnddngldkgtslldrkq",
    ..BLANK
}
.provider();
