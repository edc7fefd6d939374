//! Trello: HMAC-SHA1 over `{body}{URL}`, base64, in `X-Trello-Webhook`.
//!
//! <https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "trello",
    title: "Trello",
    docs: "https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/",
    schemes: items![
        hmac(in_header("x-trello-webhook")).sha1().base64().over(list![BODY, Part::Url]).scheme()
    ],
    identity: items![id(json("/action/id"))],
    event_type: items![kind(json("/action/type"))],
    object: items![json("/action/data/card/id"), json("/model/id")],
    version: items![version(json("/action/date"), Unit::Iso8601)],
    handshakes: items![asks(HEAD, Wants::Method)],
    retry: "Three retries: after 30, 60 and 120 s; 410 deletes the webhook, as do 30 days of \
         failures.",
    retry_hours: 1,
    find_secret: "trello.com/power-ups/admin, your app, API key, Secret.",
    notes: "The URL is signed, so Oncebox must know the public URL exactly as set at Trello. \
         Trello asks with HEAD when a webhook is made.",
    sample_type: "updateCard",
    sample_body: r#"{"action":{"idMemberCreator":"50f6ec9bd8fd4bbb0c00221a",
        "data":{"board":{"id":"4d5ea62fd76aa1136000000c","name":"A sample"},
        "card":{"name":"A sample"}}},"model":{"id":"4d5ea62fd76aa1136000000c"}}"#,
    sample_object: "51f9424bcd6e040f3c002411",
    ..BLANK
}
.provider();
