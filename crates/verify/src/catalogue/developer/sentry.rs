//! Sentry: HMAC-SHA256 over the body, hex, in `Sentry-Hook-Signature`.
//!
//! <https://docs.sentry.io/organization/integrations/integration-platform/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "sentry",
    title: "Sentry",
    docs: "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
    schemes: items![hmac(in_header("sentry-hook-signature")).scheme()],
    // `Request-ID` is new for each request, and the time beside it is not signed.
    identity: items![Identity::Digest],
    event_type: items![kind_with(header("sentry-hook-resource"), json("/action"))],
    object: items![
        json("/data/issue/id"),
        json("/data/event/event_id"),
        json("/installation/uuid")
    ],
    version: items![version(json("/data/issue/lastSeen"), Unit::Iso8601)],
    retry: "Not guaranteed; a published app that fails may be disabled.",
    find_secret: "Settings, Developer settings, your integration, Client secret.",
    notes: "Sentry waits 1 s for an answer. Two notices with the same body, byte for byte, count \
         as one event.",
    sample_type: "issue.created",
    sample_headers: items![(text("sentry-hook-timestamp"), text("1760000000"))],
    sample_body: r#"{"actor":{"type":"application","id":"sentry","name":"Sentry"},
        "installation":{"uuid":"24b516f9-9ce1-4f3b-9b0a-3a8b0a9d6c11"},
        "data":{"issue":{"title":"ReferenceError: heck is not defined","level":"error",
        "status":"unresolved","shortId":"SAMPLE-1"}}}"#,
    sample_object: "1170820242",
    ..BLANK
}
.provider();
