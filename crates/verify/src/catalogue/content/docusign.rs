//! DocuSign Connect: HMAC-SHA256 over the body, base64, one numbered header for each key.
//!
//! <https://developers.docusign.com/platform/webhooks/connect/hmac/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "docusign",
    title: "DocuSign Connect",
    docs: "https://developers.docusign.com/platform/webhooks/connect/hmac/",
    schemes: items![hmac(Place::Numbered(text("x-docusign-signature-"))).base64().scheme()],
    // Envelopes may bring their own configuration, which has no id.
    identity: items![
        Identity::Joined(list![
            json("/configurationId"),
            json("/data/envelopeId"),
            json("/event"),
            json("/generatedDateTime")
        ]),
        Identity::Joined(list![
            json("/data/envelopeId"),
            json("/event"),
            json("/generatedDateTime")
        ])
    ],
    event_type: items![kind(json("/event"))],
    object: items![json("/data/envelopeId")],
    version: items![version(json("/generatedDateTime"), Unit::Iso8601)],
    // Counts the attempts.
    volatile: items![text("/retryCount")],
    retry: "From about five minutes on with doubling pauses, for up to 15 days.",
    retry_hours: 360,
    find_secret: "Settings, Connect, Connect keys: a key as shown, which is not decoded.",
    notes: "Only the JSON format is read, not the older XML. The first eight numbered signatures \
         are tried. DocuSign waits 100 s.",
    sample_type: "envelope-completed",
    sample_body: r#"{"apiVersion":"v2.1",
        "uri":"/restapi/v2.1/accounts/sample/envelopes/sample","retryCount":0,
        "configurationId":10408321,"data":{"accountId":"sample","userId":"sample"}}"#,
    sample_object: "93be49ab-57ad-4c9b-8cd9-7f7f0e2a0cc4",
    ..BLANK
}
.provider();
