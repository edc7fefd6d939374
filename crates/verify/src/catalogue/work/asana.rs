//! Asana: HMAC-SHA256 over the body, hex, in `X-Hook-Signature`.
//!
//! <https://developers.asana.com/docs/webhooks-guide>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "asana",
    title: "Asana",
    docs: "https://developers.asana.com/docs/webhooks-guide",
    schemes: items![hmac(in_header("x-hook-signature")).scheme()],
    batches: items![batch("/events")],
    identity: items![Identity::Digest],
    event_type: items![kind_with(item("/resource/resource_type"), item("/action"))],
    object: items![item("/resource/gid")],
    version: items![version(item("/created_at"), Unit::Iso8601)],
    // Told while the call that creates the webhook is open.
    pairing: Some(
        const { &Pairing { secret: header("x-hook-secret"), echo: Some(text("X-Hook-Secret")) } },
    ),
    retry: "With growing pauses for a day; then the webhook is deleted, as after 410.",
    retry_hours: 24,
    find_secret: "The X-Hook-Secret that Asana sends when the webhook is made; each webhook has \
         its own.",
    notes: "Open a pairing window before the webhook is made: Asana then sends its secret, which \
         is kept. A heartbeat without events comes every eight hours. Asana waits 10 s.",
    sample_type: "task.changed",
    sample_body: r#"{"events":[{"user":{"gid":"12345","resource_type":"user"},
        "resource":{"resource_subtype":"default_task"},"parent":null,
        "change":{"field":"name","action":"changed"}}]}"#,
    sample_object: "1331",
    ..BLANK
}
.provider();
