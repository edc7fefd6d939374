//! Liveblocks: Standard Webhooks.
//!
//! <https://liveblocks.io/docs/platform/webhooks>

use super::family::{BY_WEBHOOK, Member, WEBHOOK_ID};
use super::{json, kind};
use crate::provider::Provider;

pub(super) static LIVEBLOCKS: Provider = Member {
    name: "liveblocks",
    title: "Liveblocks",
    docs: "https://liveblocks.io/docs/platform/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, your project, Webhooks, Signing secret (whsec_...).",
    notes: "",
    sample_type: "commentCreated",
    sample_body: r#"{"data":{"projectId":"pr_sample"}}"#,
    sample_object: "cm_sample",
}
.provider();
