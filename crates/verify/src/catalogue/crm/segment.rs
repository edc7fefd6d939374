//! Segment: HMAC-SHA1 over the body, hex, in `X-Signature`.
//!
//! <https://segment.com/docs/connections/destinations/catalog/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "segment",
    title: "Segment",
    docs: "https://segment.com/docs/connections/destinations/catalog/webhooks/",
    schemes: items![hmac(in_header("x-signature")).sha1().scheme()],
    identity: items![id(json("/messageId"))],
    event_type: items![kind_with(json("/type"), json("/event"))],
    object: items![json("/userId"), json("/anonymousId")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    retry: "Not confirmed; about nine tries over four hours are spoken of.",
    retry_hours: 4,
    find_secret: "Destinations, Webhooks, Settings, Shared secret: the one you chose there.",
    notes: "Only requests of a destination with a shared secret are signed; others are refused \
         here.",
    sample_type: "track.Signed Up",
    sample_body: r#"{"channel":"server","properties":{"plan":"pro"},"context":{}}"#,
    sample_object: "97980cfea0067",
    ..BLANK
}
.provider();
