//! Anthropic: Standard Webhooks; the payload is thin.
//!
//! <https://platform.claude.com/docs>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "anthropic",
    title: "Anthropic",
    docs: "https://platform.claude.com/docs",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Retries after anything but 2xx, redirects included.",
    find_secret: "The console, your webhook, Signing secret (whsec_...).",
    notes: "The payload is thin: fetch the object by its id.",
    sample_type: "session.completed",
    sample_body: r#"{"type":"event","data":{}}"#,
    sample_object: "sesn_sample",
    ..BLANK
}
.provider();
