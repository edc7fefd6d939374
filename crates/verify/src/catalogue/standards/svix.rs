//! Svix: Standard Webhooks under `svix-*` header names.
//!
//! <https://docs.svix.com/receiving/verifying-payloads/how-manual>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "svix",
    title: "Svix",
    docs: "https://docs.svix.com/receiving/verifying-payloads/how-manual",
    // Where both sets are sent, Svix's own libraries prefer theirs; so do we.
    schemes: items![
        standard(&SVIX_NAMES, KeyForm::Whsec),
        standard_v1a(&SVIX_NAMES),
        standard(&WEBHOOK, KeyForm::Whsec),
        standard_v1a(&WEBHOOK),
    ],
    identity: items![id(header("svix-id")), id(header("webhook-id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    retry: "Eight tries over about a day.",
    retry_hours: 28,
    recovery: "Where the sender enables it, a polling endpoint lists messages.",
    find_secret: "The app portal of the sender, your endpoint, Signing Secret (whsec_... or whpk_...).",
    sample_type: "contact.created",
        sample_headers: items![(text("user-agent"), text("Svix-Webhooks/sample"))],
        sample_body: r#"{"data":{"email":"alice@example.com"}}"#,
        sample_object: "1f81eb52-5198-4599-803e-771906343485",
    ..BLANK
}
.provider();
