//! Cursor: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Webhook-Signature`.
//!
//! <https://cursor.com/docs/cloud-agent/api/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cursor",
    title: "Cursor",
    docs: "https://cursor.com/docs/cloud-agent/api/webhooks",
    schemes: items![hmac(in_header("x-webhook-signature")).prefix("sha256=").scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind_with(json("/event"), json("/status"))],
    object: items![json("/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The webhook secret that was given when the agent was launched.",
    notes: "The scheme was read in one catalogue only, not at Cursor.",
    sample_type: "statusChange.FINISHED",
    sample_body: r#"{"timestamp":"2026-01-02T03:04:05Z","summary":"A sample"}"#,
    sample_object: "bc_sample",
    ..BLANK
}
.provider();
