//! Lemon Squeezy: HMAC-SHA256 over the body, hex, in `X-Signature`.
//!
//! <https://docs.lemonsqueezy.com/help/webhooks/signing-requests>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "lemon-squeezy",
    title: "Lemon Squeezy",
    docs: "https://docs.lemonsqueezy.com/help/webhooks/signing-requests",
    schemes: items![hmac(in_header("x-signature")).scheme()],
    // There is no event id.
    identity: items![
        Identity::Joined(list![
            json("/meta/event_name"),
            json("/data/id"),
            json("/data/attributes/updated_at")
        ]),
        Identity::Digest
    ],
    event_type: items![kind(json("/meta/event_name")), kind(header("x-event-name"))],
    object: items![json("/data/id")],
    version: items![version(json("/data/attributes/updated_at"), Unit::Iso8601)],
    answer: Some(Answer::Status(200)),
    conflicts_are_news: Some("The identity has the time of the change in seconds: two changes in a second share it."),
    retry: "Not confirmed: up to three more tries, after 5, 25 and 125 s.",
    retry_hours: 1,
    find_secret: "Settings, Webhooks, your webhook, Signing secret: the one you chose there.",
    notes: "Two events of one type about one object count as one if the object was not \
         updated between them.",
    sample_type: "order_created",
    sample_body: r#"{"meta":{"test_mode":true},"data":{"type":"orders",
        "attributes":{"status":"paid","currency":"EUR","total":999}}}"#,
    sample_object: "1",
    ..BLANK
}
.provider();
