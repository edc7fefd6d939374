//! Slack: HMAC-SHA256 over `v0:{timestamp}:{body}`, hex after `v0=`.
//!
//! <https://docs.slack.dev/authentication/verifying-requests-from-slack>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "slack",
    title: "Slack",
    docs: "https://docs.slack.dev/authentication/verifying-requests-from-slack",
    // Slack's SDKs disagree about the future; we refuse it.
    schemes: items![
        hmac(label("x-slack-signature", ",", "v0"))
            .stamp(in_header("x-slack-request-timestamp"), SECONDS, 300)
            .over(list![lit("v0:"), TIME, lit(":"), BODY])
            .scheme()
    ],
    // Commands and interactivity have no event id, but a trigger is used once.
    identity: items![
        id(json("/event_id")),
        id(json("/trigger_id")),
        id(form("trigger_id")),
        Identity::Digest,
    ],
    event_type: items![
        kind(json("/event/type")),
        kind(json("/type")),
        TypeRule { text: text("command:"), first: form("command"), then: None },
    ],
    object: items![
        json("/event/channel"),
        json("/event/channel/id"),
        json("/channel/id"),
        form("channel_id"),
    ],
    version: items![
        version(json("/event/event_ts"), Unit::Seconds),
        version(json("/event_time"), Unit::Seconds),
    ],
    payload: Payload::FormJson("payload"),
    handshakes: items![
        asks(POST, Wants::Is(json("/type"), text("url_verification")))
            .signed()
            .challenge(json("/challenge"))
            .says(ECHO)
    ],
    // The answer to a command is shown to the person who typed it: say nothing.
    answer: Some(Answer::Exactly { status: 200, content_type: "text/plain", body: "" }),
    retry: "Three retries: at once, after a minute, after five.",
    retry_hours: 1,
    find_secret: "Your app at api.slack.com, Basic Information, Signing Secret.",
    notes: "Slack waits 3 s for an answer.",
    sample_type: "app_mention",
        sample_headers: items![(text("user-agent"), text("Slackbot 1.0 (+https://api.slack.com/robots)"))],
        sample_body: r#"{"type":"event_callback","team_id":"T061EG9R6","api_app_id":"A0PNCHHK2",
                "event":{"user":"U061F7AUR","text":"hello","ts":"1515449522.000016"}}"#,
        sample_object: "C123ABC456",
    ..BLANK
}
.provider();
