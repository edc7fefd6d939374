//! Box: HMAC-SHA256 over `{body}{timestamp}`, base64, in one header for each of two keys.
//!
//! <https://developer.box.com/guides/webhooks/v2/signatures-v2/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "box",
    title: "Box",
    docs: "https://developer.box.com/guides/webhooks/v2/signatures-v2/",
    schemes: items![
        hmac(Place::AnyOf(list![text("box-signature-primary"), text("box-signature-secondary")]))
            .base64()
            .stamp(in_header("box-delivery-timestamp"), ISO, 600)
            .over(list![BODY, TIME])
            .scheme()
    ],
    fixed_headers: items![
        (text("box-signature-version"), text("1")),
        (text("box-signature-algorithm"), text("HmacSHA256")),
    ],
    // `BOX-DELIVERY-ID` is new on every retry.
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/trigger"))],
    object: items![json("/source/id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    retry: "Up to ten retries with growing pauses; a webhook that fails for long is disabled.",
    find_secret: "Developer console, your app, Webhooks, Manage signature keys: list both keys.",
    notes: "Box waits 30 s for an answer.",
    sample_type: "FILE.UPLOADED",
    sample_headers: items![
        (text("box-signature-version"), text("1")),
        (text("box-signature-algorithm"), text("HmacSHA256")),
    ],
    sample_body: r#"{"type":"webhook_event","webhook":{"id":"1234567890","type":"webhook"},
        "created_by":{"type":"user","id":"17738362","name":"Sample"},
        "source":{"type":"file","name":"Test.txt","etag":"0","sequence_id":"0"}}"#,
    sample_object: "73835521473",
    ..BLANK
}
.provider();
