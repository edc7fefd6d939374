//! Attio: HMAC-SHA256 over the body, hex, in `Attio-Signature`.
//!
//! <https://docs.attio.com/rest-api/guides/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "attio",
    title: "Attio",
    docs: "https://docs.attio.com/rest-api/guides/webhooks",
    schemes: items![hmac(in_header("attio-signature")).scheme()],
    batches: items![batch("/events")],
    // The key names the request, not the event in it; and an event names only what changed, so two
    // changes may read the same.
    identity: items![Identity::JoinedDigest(list![header("idempotency-key")])],
    event_type: items![kind(item("/event_type"))],
    object: items![item("/id/record_id"), item("/id/entry_id")],
    // Else the second change of a record would be taken for the first, sent again.
    guard: Guard::Nothing,
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The answer to the call that created the webhook, secret; or Settings, \
         Developers, Webhooks.",
    notes: "An event names the record, not the change: read the record again. The key of a \
         request is not signed, so whoever captured one can send it again under another key.",
    sample_type: "record.updated",
    sample_body: r#"{"webhook_id":"sample","events":[{"id":{"workspace_id":"sample",
        "object_id":"sample"},"actor":{"type":"system","id":null}}]}"#,
    sample_object: "bf071e1f-6035-429d-b874-d83ea64ea13b",
    ..BLANK
}
.provider();
