//! Loops: Standard Webhooks.
//!
//! <https://loops.so/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "loops",
    title: "Loops",
    docs: "https://loops.so/docs/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/eventName"))],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Settings, Webhooks, Signing secret (whsec_...).",
    notes: "The scheme was read in one catalogue only, not at Loops.",
    sample_type: "contact.created",
    sample_body: r#"{"contactIdentity":{"email":"alice@example.com"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
