//! Cisco Meraki: a static secret in the body, at `/sharedSecret`.
//!
//! <https://developer.cisco.com/meraki/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "meraki",
    title: "Cisco Meraki",
    docs: "https://developer.cisco.com/meraki/webhooks/",
    schemes: items![token_at(TokenPlace::Json(text("/sharedSecret")), TokenKind::Plain)],
    // `/alertId` is empty for some alerts.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/alertTypeId"))],
    version: items![version(json("/occurredAt"), Unit::Iso8601)],
    // When it was sent.
    volatile: items![text("/sentAt")],
    retry: "Not confirmed: 100 failures within a day disable the webhook.",
    find_secret: "Network-wide, Alerts, Webhooks, your server, Shared secret: the one you \
         chose there.",
    notes: "The body is not signed and holds the secret: whoever may read stored bodies may \
         read it.",
    sample_type: "settings_changed",
    sample_body: r#"{"version":"0.1","organizationName":"Sample","networkName":"Main Office",
        "alertLevel":"informational"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
