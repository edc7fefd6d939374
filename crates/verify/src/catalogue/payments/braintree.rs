//! Braintree: HMAC-SHA1 over a payload, hex beside the public key, in a form.
//!
//! <https://developer.paypal.com/braintree/docs/guides/webhooks/parse>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "braintree",
    title: "Braintree",
    docs: "https://developer.paypal.com/braintree/docs/guides/webhooks/parse",
    schemes: items![Scheme::Special(Special::Braintree)],
    settings: items![optional(
        "public_key",
        "The public key beside the private one. Needed to answer the check of a new URL."
    )],
    payload: Payload::FormXml("bt_payload"),
    identity: items![
        Identity::Joined(list![
            Field::Xml(text("notification/kind")),
            Field::Xml(text("notification/subject/*/id")),
            Field::Xml(text("notification/timestamp")),
        ]),
        Identity::Digest,
    ],
    event_type: items![kind(Field::Xml(text("notification/kind")))],
    object: items![Field::Xml(text("notification/subject/*/id"))],
    version: items![version(Field::Xml(text("notification/timestamp")), Unit::Iso8601)],
    handshakes: items![
        asks(GET, Wants::Has(query("bt_challenge"))).challenge(query("bt_challenge")).says(
            Said::Text(list![
                Piece::Setting(text("public_key")),
                Piece::Text(text("|")),
                Piece::BraintreeMac,
            ])
        )
    ],
    answer: Some(Answer::Status(200)),
    conflicts_are_news: Some("The identity has a time in seconds: two notices in a second share it."),
    retry: "Every hour for up to 24 hours (sandbox: 3 hours); answers must come within 30 seconds.",
    retry_hours: 24,
    find_secret: "Control Panel, Settings, API, your API key, Private Key.",
    notes: "There is no id: an event is known by kind, subject and time. The form that came in is \
         kept as it is; the event is XML in base64 in `bt_payload`.",
    sample_type: "subscription_charged_successfully",
    sample_body: "<notification><timestamp type=\"datetime\">2026-01-02T03:04:05Z</timestamp>\
         <kind>subscription_charged_successfully</kind><subject><subscription><id>sample</id>\
         <status>Active</status></subscription></subject></notification>",
    sample_object: "sample",
    sample_form: true,
    ..BLANK
}
.provider();
