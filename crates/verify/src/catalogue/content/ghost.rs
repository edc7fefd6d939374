//! Ghost: HMAC-SHA256 over `{body}{timestamp}`, hex, in `X-Ghost-Signature`.
//!
//! <https://docs.ghost.org/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "ghost",
    title: "Ghost",
    docs: "https://docs.ghost.org/webhooks",
    // Retries are those of the HTTP client and end within a minute.
    schemes: items![
        hmac(label("x-ghost-signature", ",", "sha256"))
            .stamp(label("x-ghost-signature", ",", "t"), MILLISECONDS, 300)
            .over(list![BODY, TIME])
            .scheme()
    ],
    // The body does not name the event, only what it is about.
    identity: items![Identity::Digest],
    event_type: items![kind(Field::KeyBeside(list![]))],
    object: items![
        json("/post/current/id"),
        json("/page/current/id"),
        json("/member/current/id"),
        json("/tag/current/id")
    ],
    version: items![
        version(json("/post/current/updated_at"), Unit::Iso8601),
        version(json("/page/current/updated_at"), Unit::Iso8601),
        version(json("/member/current/updated_at"), Unit::Iso8601),
        version(json("/tag/current/updated_at"), Unit::Iso8601)
    ],
    retry: "Five retries by the HTTP client; 410 deletes the webhook.",
    find_secret: "Settings, Integrations, your integration, your webhook, Secret.",
    notes: "The type is what changed, such as post: give each event of Ghost a source of its \
         own, or the same body under two events counts once. Ghost before 5.x signed the body \
         alone and is refused. Ghost waits 2 s.",
    sample_type: "post",
    sample_body: r#"{"post":{"current":{"title":"A sample","status":"published"},
        "previous":{"status":"draft"}}}"#,
    sample_object: "65f1c2d3e4b5a60001a2b3c4",
    ..BLANK
}
.provider();
