//! Twitch EventSub: HMAC-SHA256 over `{id}{timestamp}{body}`, hex after `sha256=`.
//!
//! <https://dev.twitch.tv/docs/eventsub/handling-webhook-events/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "twitch",
    title: "Twitch EventSub",
    docs: "https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
    schemes: items![
        hmac(in_header("twitch-eventsub-message-signature"))
            .prefix("sha256=")
            .stamp(in_header("twitch-eventsub-message-timestamp"), ISO, 600)
            .over(list![Part::Header(text("twitch-eventsub-message-id")), TIME, BODY])
            .scheme()
    ],
    identity: items![id(header("twitch-eventsub-message-id"))],
    // A revocation has the type of its subscription too.
    event_type: items![kind_with(
        json("/subscription/type"),
        header("twitch-eventsub-message-type")
    )],
    object: items![json("/event/id"), json("/event/broadcaster_user_id"), json("/event/user_id")],
    version: items![version(header("twitch-eventsub-message-timestamp"), Unit::Iso8601)],
    handshakes: items![
        asks(
            POST,
            Wants::Is(
                header("twitch-eventsub-message-type"),
                text("webhook_callback_verification")
            )
        )
        .signed()
        .challenge(json("/challenge"))
        .says(ECHO)
    ],
    retry: "On a schedule that is not published; too many failures revoke the subscription.",
    find_secret: "The secret, of 10 to 100 characters, that was given when the subscription was \
         made.",
    notes: "A type ends in .notification or .revocation. Twitch waits a few seconds for an answer.",
    sample_type: "stream.online.notification",
    sample_body: r#"{"subscription":{"id":"f1c2a387-161a-49f9-a165-0f21d7a4e1c4",
        "version":"1","status":"enabled","cost":0,
        "condition":{"broadcaster_user_id":"1337"}},"event":{"broadcaster_user_id":"1337",
        "broadcaster_user_login":"cool_user","type":"live"}}"#,
    sample_object: "9001",
    ..BLANK
}
.provider();
