//! Recall.ai: Standard Webhooks.
//!
//! <https://docs.recall.ai/docs/authenticating-requests-from-recallai>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "recall-ai",
    title: "Recall.ai",
    docs: "https://docs.recall.ai/docs/authenticating-requests-from-recallai",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/event"))],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, Webhooks, your endpoint, Signing secret (whsec_...).",
    notes: "The scheme was read in one catalogue only, not at Recall.ai.",
    sample_type: "transcript.done",
    sample_body: r#"{"data":{"bot":{"id":"sample"}}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
