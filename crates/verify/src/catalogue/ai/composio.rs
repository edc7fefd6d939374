//! Composio: Standard Webhooks.
//!
//! <https://docs.composio.dev/docs/using-triggers>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "composio",
    title: "Composio",
    docs: "https://docs.composio.dev/docs/using-triggers",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, Settings, Webhook, Secret.",
    notes: "The scheme was read in one catalogue only, not at Composio.",
    sample_type: "github_commit_event",
    sample_body: r#"{"data":{"connection_id":"sample"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
