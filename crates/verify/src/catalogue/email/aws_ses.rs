//! Amazon SES: events that come through an SNS topic, signed as SNS signs.
//!
//! <https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns.html>

use crate::catalogue::words::*;

const fn inside(pointer: &'static str) -> Field {
    Field::Within(text("/Message"), text(pointer))
}

pub(super) static ENTRY: Provider = Entry {
    name: "aws-ses",
    title: "Amazon SES",
    docs: "https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns.html",
    schemes: items![Scheme::Special(Special::Sns)],
    settings: items![
        needed(
            "topic_arn",
            "The topic that SES publishes to, or several: every customer of AWS can sign, and only \
             the topic says that it was SES for you.",
        ),
        optional("signature_version", "`2` refuses the older signatures with SHA-1."),
    ],
    identity: items![id(json("/MessageId"))],
    event_type: items![
        kind(inside("/eventType")),
        kind(inside("/notificationType")),
        kind(json("/Type")),
    ],
    object: items![inside("/mail/messageId")],
    version: items![
        version(inside("/bounce/timestamp"), Unit::Iso8601),
        version(inside("/complaint/timestamp"), Unit::Iso8601),
        version(inside("/delivery/timestamp"), Unit::Iso8601),
        version(json("/Timestamp"), Unit::Iso8601),
    ],
    handshakes: items![asks(POST, Wants::Is(json("/Type"), text("SubscriptionConfirmation"))).signed()],
    retry: "As SNS retries: a few times about 20 s apart unless the topic says otherwise.",
    retry_hours: 1,
    find_secret: "There is none: the certificate is fetched from SNS. Name the topic of the \
         configuration set, or of the identity's notifications.",
    notes: "Leave raw message delivery off, for it has no signature. The subscription must be \
         confirmed once.",
    sample_type: "Delivery",
    sample_body: r#"{"Type":"Notification","TopicArn":"arn:aws:sns:us-east-1:123456789012:ses",
        "Message":"{\"mail\":{\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"source\":\"shop@example.com\",\"destination\":[\"alice@example.com\"]}}"}"#,
    sample_object: "0100018f0000000a-00000000-0000-4000-8000-000000000000-000000",
    ..BLANK
}
.provider();
