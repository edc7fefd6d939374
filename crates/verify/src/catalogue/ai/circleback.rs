//! Circleback: HMAC-SHA256 over the body, hex, in `X-Signature`.
//!
//! <https://circleback.ai/docs/webhook-integration>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "circleback",
    title: "Circleback",
    docs: "https://circleback.ai/docs/webhook-integration",
    schemes: items![hmac(in_header("x-signature")).scheme()],
    identity: items![Identity::Digest],
    object: items![json("/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Automations, your webhook, Signing secret.",
    notes: "There is one kind of event, the notes of a meeting, and nothing names it. The scheme \
         was read in one implementation only, not at Circleback.",
    sample_type: "unknown",
    sample_body: r#"{"name":"A sample","notes":"Overview","actionItems":[]}"#,
    sample_object: "1234567",
    ..BLANK
}
.provider();
