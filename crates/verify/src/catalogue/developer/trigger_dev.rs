//! Trigger.dev: HMAC-SHA256 over the body, hex, in `x-trigger-signature-hmacsha256`.
//!
//! <https://trigger.dev/docs/troubleshooting-alerts>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "trigger-dev",
    title: "Trigger.dev",
    docs: "https://trigger.dev/docs/troubleshooting-alerts",
    schemes: items![hmac(in_header("x-trigger-signature-hmacsha256")).scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Shown when the alert with a webhook is made.",
    sample_type: "alert.run.failed",
    sample_body: r#"{"webhookVersion":"v1","object":{"task":{"id":"sample"}}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
