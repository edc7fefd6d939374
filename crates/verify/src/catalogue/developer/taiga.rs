//! Taiga: HMAC-SHA1 over the body, hex, in `X-Taiga-Webhook-Signature`.
//!
//! <https://docs.taiga.io/webhooks.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "taiga",
    title: "Taiga",
    docs: "https://docs.taiga.io/webhooks.html",
    schemes: items![hmac(in_header("x-taiga-webhook-signature")).sha1().scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind_with(json("/type"), json("/action"))],
    object: items![json("/data/id")],
    version: items![version(json("/date"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Project settings, Integrations, Webhooks, Secret key: the one you chose there.",
    sample_type: "issue.create",
    sample_body: r#"{"by":{"id":6,"username":"alice"},"data":{"subject":"A sample"}}"#,
    sample_object: "10",
    ..BLANK
}
.provider();
