//! Fireflies: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature`.
//!
//! <https://docs.fireflies.ai/graphql-api/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "fireflies",
    title: "Fireflies",
    docs: "https://docs.fireflies.ai/graphql-api/webhooks",
    schemes: items![hmac(in_header("x-hub-signature")).prefix("sha256=").scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event"))],
    object: items![json("/meeting_id")],
    version: items![version(json("/timestamp"), Unit::Milliseconds)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Developer settings, Webhooks, Signing secret.",
    notes: "This is version 2; version 1 sent bare hex and is refused. Fireflies waits 10 s.",
    sample_type: "meeting.transcribed",
    sample_body: r#"{"client_reference_id":"sample"}"#,
    sample_object: "ASxwZxCstx",
    ..BLANK
}
.provider();
