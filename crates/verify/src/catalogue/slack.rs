//! Slack: HMAC-SHA256 over `v0:{timestamp}:{body}`, hex after `v0=`.
//!
//! <https://docs.slack.dev/authentication/verifying-requests-from-slack>

use super::{form, id, json, kind, text, version};
use crate::provider::{
    Algorithm, Answer, Encoding, Guard, Handshake, Hmac, Identity, KeyEncoding, Part, Place,
    Provider, Sample, Scheme, Stamp, TimeFormat, TypeRule, Unit,
};

pub(super) static SLACK: Provider = Provider {
    name: text("slack"),
    title: text("Slack"),
    docs: text("https://docs.slack.dev/authentication/verifying-requests-from-slack"),
    schemes: list![Scheme::Hmac(Hmac {
        algorithm: Algorithm::Sha256,
        signature: Place::Label {
            header: text("x-slack-signature"),
            label: text("v0"),
            separator: ',',
        },
        prefix: text(""),
        separator: None,
        encoding: Encoding::Hex,
        // Slack's SDKs disagree about the future; we refuse it.
        timestamp: Some(Stamp {
            place: Place::Header(text("x-slack-request-timestamp")),
            format: TimeFormat::Seconds,
            tolerance_secs: 300,
        }),
        signed: list![Part::Text(text("v0:")), Part::Timestamp, Part::Text(text(":")), Part::Body,],
        key: KeyEncoding::Text,
    })],
    // Commands and interactivity have no event id, but a trigger is used once.
    identity: list![
        id(json("/event_id")),
        id(json("/trigger_id")),
        id(form("trigger_id")),
        Identity::Digest,
    ],
    event_type: list![
        kind(json("/event/type")),
        kind(json("/type")),
        TypeRule { text: text("command:"), first: form("command"), then: None },
    ],
    object: list![
        json("/event/channel"),
        json("/event/channel/id"),
        json("/channel/id"),
        form("channel_id"),
    ],
    version: list![
        version(json("/event/event_ts"), Unit::Seconds),
        version(json("/event_time"), Unit::Seconds),
    ],
    volatile: list![],
    guard: Guard::Content,
    form_payload: Some(text("payload")),
    handshake: Some(Handshake::EchoJson {
        when: text("/type"),
        is: text("url_verification"),
        echo: text("/challenge"),
    }),
    // The answer to a command is shown to the person who typed it: say nothing.
    answer: Some(Answer::Exactly { status: 200, content_type: "text/plain", body: "" }),
    retry: text("Three retries: at once, after a minute, after five."),
    find_secret: text("Your app at api.slack.com, Basic Information, Signing Secret."),
    notes: text("Slack waits 3 s for an answer."),
    sample_type: text("app_mention"),
    sample: Sample {
        headers: list![(text("user-agent"), text("Slackbot 1.0 (+https://api.slack.com/robots)"))],
        body: text(
            r#"{"type":"event_callback","team_id":"T061EG9R6","api_app_id":"A0PNCHHK2",
                "event":{"user":"U061F7AUR","text":"hello","ts":"1515449522.000016"}}"#,
        ),
        object: text("C123ABC456"),
        form: false,
    },
};
