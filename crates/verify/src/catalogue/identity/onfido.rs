//! Onfido: HMAC-SHA256 over the body, hex, in `X-SHA2-Signature`.
//!
//! <https://documentation.onfido.com/api/latest/#webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "onfido",
    title: "Onfido",
    docs: "https://documentation.onfido.com/api/latest/#webhooks",
    schemes: items![hmac(in_header("x-sha2-signature")).scheme()],
    // There is no event id, and not every object is ever completed.
    identity: items![
        Identity::Joined(list![
            json("/payload/action"),
            json("/payload/object/id"),
            json("/payload/object/completed_at_iso8601")
        ]),
        Identity::Digest
    ],
    event_type: items![kind(json("/payload/action"))],
    object: items![json("/payload/object/id")],
    version: items![version(json("/payload/object/completed_at_iso8601"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "Dashboard, Developers, Webhooks, your webhook, Token.",
    sample_type: "check.completed",
    sample_body: r#"{"payload":{"resource_type":"check","object":{"status":"complete"}}}"#,
    sample_object: "12345-23122-32123",
    ..BLANK
}
.provider();
