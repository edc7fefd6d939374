//! Contentful: HMAC-SHA256 over a canonical request, hex, in `x-contentful-signature`.
//!
//! <https://www.contentful.com/developers/docs/webhooks/request-verification/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "contentful",
    title: "Contentful",
    docs: "https://www.contentful.com/developers/docs/webhooks/request-verification/",
    schemes: items![Scheme::Special(Special::Contentful)],
    identity: items![
        id(header("x-contentful-idempotency-key")),
        Identity::Joined(list![
            json("/sys/id"),
            json("/sys/version"),
            header("x-contentful-topic"),
        ]),
        Identity::Digest,
    ],
    event_type: items![kind(header("x-contentful-topic"))],
    object: items![json("/sys/id")],
    version: items![
        version(json("/sys/version"), Unit::Plain),
        version(json("/sys/revision"), Unit::Plain),
    ],
    retry: "After 429 and 5xx, about 30 seconds apart; never after a timeout, which is 30 seconds.",
    retry_hours: 1,
    find_secret: "Settings, Webhooks, Settings, Enable request verification: 64 characters.",
    notes: "Path, query, listed headers, time and body are signed, so Oncebox must know the public \
         URL. The time may be 30 seconds off.",
    sample_type: "ContentManagement.Entry.publish",
    sample_body: r#"{"sys":{"type":"Entry","version":1,"revision":1,
            "space":{"sys":{"type":"Link","linkType":"Space","id":"sample"}},
            "environment":{"sys":{"type":"Link","linkType":"Environment","id":"master"}}},
            "fields":{"title":{"en-US":"Sample"}}}"#,
    sample_object: "5KsDBWseXY6QegucYAoacS",
    ..BLANK
}
.provider();
