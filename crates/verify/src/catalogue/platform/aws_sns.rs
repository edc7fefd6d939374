//! Amazon SNS: RSA over values of the JSON, base64, in `Signature`, by the certificate it names.
//!
//! <https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "aws-sns",
    title: "Amazon SNS",
    docs: "https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html",
    schemes: items![Scheme::Special(Special::Sns)],
    settings: items![
        needed(
            "topic_arn",
            "Your topic, or several: every customer of AWS can have SNS sign, and only the topic \
             says that it was for you.",
        ),
        optional("signature_version", "`2` refuses the older signatures with SHA-1."),
    ],
    identity: items![id(json("/MessageId"))],
    event_type: items![kind(json("/Type"))],
    object: items![json("/TopicArn")],
    version: items![version(json("/Timestamp"), Unit::Iso8601)],
    handshakes: items![asks(POST, Wants::Is(json("/Type"), text("SubscriptionConfirmation"))).signed()],
    retry: "A few times about 20 s apart unless the topic has a policy of its own, up to 100 times \
         within an hour; then to its dead-letter queue.",
    retry_hours: 1,
    find_secret: "There is none: the certificate is fetched from SNS. Name your topic.",
    notes: "Leave raw message delivery off, for it has no signature. The subscription must be \
         confirmed once.",
    sample_type: "Notification",
    sample_body: r#"{"Subject":"Hello","Message":"Hello world!"}"#,
    sample_object: "arn:aws:sns:us-east-1:123456789012:orders",
    ..BLANK
}
.provider();
