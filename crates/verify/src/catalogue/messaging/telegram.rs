//! Telegram bots: the secret token of the webhook in `X-Telegram-Bot-Api-Secret-Token`.
//!
//! <https://core.telegram.org/bots/api#setwebhook>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "telegram",
    title: "Telegram Bot API",
    docs: "https://core.telegram.org/bots/api#setwebhook",
    schemes: items![token("x-telegram-bot-api-secret-token")],
    identity: items![id(json("/update_id"))],
    // An update has one key beside its id, which says what it is.
    event_type: items![kind(Field::KeyBeside(list![text("update_id")]))],
    object: items![
        json("/message/chat/id"),
        json("/edited_message/chat/id"),
        json("/channel_post/chat/id"),
        json("/edited_channel_post/chat/id"),
        json("/callback_query/message/chat/id"),
    ],
    version: items![version(json("/update_id"), Unit::Plain)],
    // An answer with a body may be a call of a method.
    answer: Some(Answer::Silent(200)),
    retry: "A number of times that is not documented; updates are kept for 24 hours.",
    retry_hours: 24,
    find_secret: "The `secret_token` given to setWebhook: 1 to 256 of A-Z, a-z, 0-9, _ and -.",
    notes: "The token proves the sender, not the body. The version is the number of the update, \
         which counts up. Telegram waits about a minute.",
    sample_type: "message",
    sample_body: r#"{"update_id":1,"message":{"message_id":1365,"date":1760000000,
            "from":{"id":1111111,"is_bot":false,"first_name":"Sample"},
            "chat":{"id":1111111,"type":"private","first_name":"Sample"},"text":"/start"}}"#,
    sample_object: "1111111",
    ..BLANK
}
.provider();
