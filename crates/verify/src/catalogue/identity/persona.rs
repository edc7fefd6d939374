//! Persona: HMAC-SHA256 over `{t}.{body}`, hex, in `Persona-Signature`.
//!
//! <https://docs.withpersona.com/docs/webhooks-best-practices>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "persona",
    title: "Persona",
    docs: "https://docs.withpersona.com/docs/webhooks-best-practices",
    // While a secret is rotated, a second pair follows after a space. Whether a retry is signed
    // anew is not known, so no age is refused.
    schemes: items![
        hmac(label("persona-signature", ", ", "v1"))
            .undated(label("persona-signature", ", ", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/data/id"))],
    event_type: items![kind(json("/data/attributes/name"))],
    object: items![json("/data/attributes/payload/data/id")],
    version: items![version(json("/data/attributes/created-at"), Unit::Iso8601)],
    retry: "Up to seven more tries, with growing pauses.",
    find_secret: "Dashboard, Webhooks, your webhook, Secret (wbhsec_...).",
    notes: "Persona waits 5 s.",
    sample_type: "inquiry.completed",
    sample_body: r#"{"data":{"type":"event","attributes":{"payload":{"data":{"type":"inquiry",
        "attributes":{"status":"completed"}}}}}}"#,
    sample_object: "inq_sample",
    ..BLANK
}
.provider();
