//! Figma: a passcode inside the body.
//!
//! <https://developers.figma.com/docs/rest-api/webhooks-security/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "figma",
    title: "Figma",
    docs: "https://developers.figma.com/docs/rest-api/webhooks-security/",
    schemes: items![token_at(TokenPlace::Json(text("/passcode")), TokenKind::Plain)],
    // A ping names no file.
    identity: items![
        Identity::Joined(list![
            json("/webhook_id"),
            json("/event_type"),
            json("/file_key"),
            json("/timestamp")
        ]),
        Identity::Joined(list![json("/webhook_id"), json("/event_type"), json("/timestamp")])
    ],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/file_key")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    // Counts the attempts.
    volatile: items![text("/retries")],
    conflicts_are_news: Some("The identity has a time in seconds: two comments in a second share it."),
    retry: "Three retries: after 5 minutes, 30 minutes and 3 hours; 400 stops the webhook.",
    retry_hours: 4,
    find_secret: "The passcode that was given when the webhook was made.",
    notes: "The passcode proves who sent a request, not what was sent, and is a part of every \
         stored body.",
    sample_type: "FILE_UPDATE",
    sample_body: r#"{"file_name":"A sample","retries":0}"#,
    sample_object: "zH0MrD4fTqBUvRkQjSdNQH",
    ..BLANK
}
.provider();
