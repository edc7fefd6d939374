//! Liveblocks: Standard Webhooks.
//!
//! <https://liveblocks.io/docs/platform/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "liveblocks",
    title: "Liveblocks",
    docs: "https://liveblocks.io/docs/platform/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, your project, Webhooks, Signing secret (whsec_...).",
    sample_type: "commentCreated",
    sample_body: r#"{"data":{"projectId":"pr_sample"}}"#,
    sample_object: "cm_sample",
    ..BLANK
}
.provider();
