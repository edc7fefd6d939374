//! Postmark: basic authentication; nothing is signed.
//!
//! <https://postmarkapp.com/developer/webhooks/webhooks-overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "postmark",
    title: "Postmark",
    docs: "https://postmarkapp.com/developer/webhooks/webhooks-overview",
    schemes: items![BASIC],
    // Bounces and complaints have a number; the rest is one message, several recipients and
    // times.
    identity: items![
        Identity::Joined(list![json("/RecordType"), json("/ID")]),
        Identity::JoinedDigest(list![json("/RecordType"), json("/MessageID")]),
        Identity::Digest
    ],
    event_type: items![kind(json("/RecordType"))],
    object: items![json("/MessageID")],
    version: items![
        version(json("/DeliveredAt"), Unit::Iso8601),
        version(json("/BouncedAt"), Unit::Iso8601),
        version(json("/ReceivedAt"), Unit::Iso8601)
    ],
    answer: Some(Answer::Status(200)),
    retry: "Bounces and inbound: ten retries, from a minute to six hours apart; opens, clicks \
         and deliveries: after 1, 5 and 15 minutes.",
    retry_hours: 24,
    find_secret: "user:password as you wrote them into the webhook URL, \
         https://user:password@....",
    notes: "The body is not signed: read the message again where that matters. Postmark gives \
         up after a 403.",
    sample_type: "Delivery",
    sample_body: r#"{"ServerID":23,"MessageStream":"outbound","Recipient":"john@example.com",
        "Tag":"welcome-email","Details":"Test delivery webhook details"}"#,
    sample_object: "00000000-0000-0000-0000-000000000000",
    ..BLANK
}
.provider();
