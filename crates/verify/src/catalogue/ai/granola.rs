//! Granola: Standard Webhooks.
//!
//! <https://docs.granola.ai>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "granola",
    title: "Granola",
    docs: "https://docs.granola.ai",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/event_type"))],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Where the webhook was made, Signing secret (whsec_...).",
    sample_type: "note.created",
    sample_body: r#"{"data":{"id":"sample"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
