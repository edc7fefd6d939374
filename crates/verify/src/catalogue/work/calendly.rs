//! Calendly: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `Calendly-Webhook-Signature`.
//!
//! <https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "calendly",
    title: "Calendly",
    docs: "https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures",
    schemes: items![
        hmac(label("calendly-webhook-signature", ",", "v1"))
            .stamp(label("calendly-webhook-signature", ",", "t"), SECONDS, 180)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Joined(list![
        json("/event"),
        json("/payload/uri"),
        json("/created_at")
    ])],
    event_type: items![kind(json("/event"))],
    object: items![json("/payload/uri")],
    version: items![
        version(json("/payload/updated_at"), Unit::Iso8601),
        version(json("/created_at"), Unit::Iso8601)
    ],
    retry: "With growing pauses for a day; then the webhook is disabled.",
    retry_hours: 24,
    find_secret: "The signing_key that was given to the call that created the subscription.",
    notes: "A subscription made without a key is sent without a signature and refused here.",
    sample_type: "invitee.created",
    sample_body: r#"{"created_by":"https://api.calendly.com/users/AAAAAAAAAAAAAAAA",
        "created_at":"2026-01-02T03:04:05.000000Z","payload":{"email":"alice@example.com",
        "name":"Alice","status":"active",
        "event":"https://api.calendly.com/scheduled_events/GBGBDCAADAEDCRZ2"}}"#,
    sample_object: "https://api.calendly.com/scheduled_events/GBGBDCAADAEDCRZ2/invitees/AAAAAAAA",
    ..BLANK
}
.provider();
