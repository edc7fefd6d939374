//! Cal.com: HMAC-SHA256 over the body, hex, in `X-Cal-Signature-256`.
//!
//! <https://cal.com/docs/developing/guides/automation/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cal-com",
    title: "Cal.com",
    docs: "https://cal.com/docs/developing/guides/automation/webhooks",
    schemes: items![hmac(in_header("x-cal-signature-256")).scheme()],
    // A payload template of your own may leave them out.
    identity: items![
        Identity::Joined(list![json("/triggerEvent"), json("/payload/uid"), json("/createdAt")]),
        Identity::Digest
    ],
    event_type: items![kind(json("/triggerEvent"))],
    object: items![json("/payload/uid")],
    version: items![version(json("/createdAt"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Developer, Webhooks, your webhook, Secret: the one you chose there.",
    sample_type: "BOOKING_CREATED",
    sample_body: r#"{"payload":{"title":"A sample","startTime":"2026-01-02T03:04:05Z"}}"#,
    sample_object: "bFJeNb2uX8ANpT3JL5EfXw",
    ..BLANK
}
.provider();
