//! PandaDoc: HMAC-SHA256 over the body, hex, in the query.
//!
//! <https://developers.pandadoc.com/reference/on-document-status-change>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "pandadoc",
    title: "PandaDoc",
    docs: "https://developers.pandadoc.com/reference/on-document-status-change",
    schemes: items![hmac(Place::Query(text("signature"))).scheme()],
    batches: items![batch("")],
    // The header `X-PandaDoc-Webhook-Event-Id` is not signed, and is one for all events of a
    // request.
    identity: items![
        Identity::Joined(list![item("/event"), item("/data/id"), item("/data/date_modified")]),
        Identity::Digest
    ],
    event_type: items![kind(item("/event"))],
    object: items![item("/data/id")],
    version: items![version(item("/data/date_modified"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    recovery: "GET /public/v1/webhook-events lists events; GET /public/v1/webhook-events/{id} has \
         the body and the signature of one.",
    find_secret: "Developer dashboard, Webhooks, your webhook, Shared key.",
    notes: "The scheme was not read again at PandaDoc.",
    sample_type: "document_state_changed",
    sample_body: r#"[{"data":{"name":"A sample","status":"document.sent"}}]"#,
    sample_object: "msFYActMfJHqNTKH8YSvF1",
    ..BLANK
}
.provider();
