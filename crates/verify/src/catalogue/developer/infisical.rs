//! Infisical: HMAC-SHA256 over the body, hex after the time; the time is in the body too.
//!
//! <https://infisical.com/docs/documentation/platform/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "infisical",
    title: "Infisical",
    docs: "https://infisical.com/docs/documentation/platform/webhooks",
    experimental: true,
    // The time in the header is not signed; the one in the body is.
    schemes: items![
        hmac(Place::Rest { header: text("x-infisical-signature"), separator: ';' })
            .stamp(Place::Json(text("/timestamp")), MILLISECONDS, 300)
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event"))],
    version: items![version(json("/timestamp"), Unit::Milliseconds)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Project settings, Webhooks, your webhook, Secret key: the one you chose there.",
    notes: "The scheme was read in the sender itself, but not tried against it.",
    sample_type: "secrets.modified",
    sample_body: r#"{"project":{"workspaceId":"sample","environment":"prod","secretPath":"/"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
