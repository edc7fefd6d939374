//! Airtable: HMAC-SHA256 over the body, hex after `hmac-sha256=`, keyed with decoded base64.
//!
//! <https://airtable.com/developers/web/api/webhooks-overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "airtable",
    title: "Airtable",
    docs: "https://airtable.com/developers/web/api/webhooks-overview",
    schemes: items![
        hmac(in_header("x-airtable-content-mac"))
            .prefix("hmac-sha256=")
            .key(KeyForm::Base64)
            .scheme()
    ],
    // The notice is thin: it only says when something happened in a base.
    identity: items![Identity::Joined(list![
        json("/base/id"),
        json("/webhook/id"),
        json("/timestamp")
    ])],
    event_type: items![kind(Field::KeyBeside(list![text("webhook"), text("timestamp")]))],
    object: items![json("/base/id")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    answer: Some(Answer::Silent(200)),
    retry: "Up to 13 tries over about a day; then notices are turned off.",
    retry_hours: 24,
    find_secret: "macSecretBase64 in the answer to the call that created the webhook.",
    notes: "A notice carries no changes: read them with GET \
         /v0/bases/{base}/webhooks/{id}/payloads and a cursor. Webhooks expire after 7 days \
         unless refreshed. Airtable waits 25 s and wants an empty answer.",
    sample_type: "base",
    sample_body: r#"{"webhook":{"id":"ach00000000000000"}}"#,
    sample_object: "app00000000000000",
    ..BLANK
}
.provider();
