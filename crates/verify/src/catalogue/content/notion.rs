//! Notion: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Notion-Signature`.
//!
//! <https://developers.notion.com/reference/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "notion",
    title: "Notion",
    docs: "https://developers.notion.com/reference/webhooks",
    schemes: items![hmac(in_header("x-notion-signature")).prefix("sha256=").scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/entity/id")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    // Counts the attempts.
    volatile: items![text("/attempt_number")],
    // The first request tells the secret, and cannot be signed with one we know.
    pairing: Some(const { &Pairing { secret: json("/verification_token"), echo: None } }),
    retry: "Up to eight retries with growing pauses over about a day.",
    retry_hours: 24,
    find_secret: "The verification_token of the first request, which is also pasted into the \
         form of the webhook.",
    notes: "Open a pairing window before the webhook is made: Notion then sends its secret, \
         which is kept.",
    sample_type: "page.created",
    sample_body: r#"{"workspace_id":"13950b26-c203-4f3b-b97d-93ec06319565",
        "workspace_name":"Sample","subscription_id":"29d75c0d-5546-4414-8459-7b7a92f1fc4b",
        "attempt_number":1,"authors":[{"id":"c7c11cca-1d73-471d-9b6e-bdef51470190",
        "type":"person"}],"entity":{"type":"page"},"data":{}}"#,
    sample_object: "153104cd-477e-809d-8dc4-ff2d96ae3090",
    ..BLANK
}
.provider();
