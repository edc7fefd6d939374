//! Viber: HMAC-SHA256 over the body, hex, in `X-Viber-Content-Signature`.
//!
//! <https://developers.viber.com/docs/api/rest-bot-api/#callbacks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "viber",
    title: "Viber",
    docs: "https://developers.viber.com/docs/api/rest-bot-api/#callbacks",
    // The signature may be in the query instead.
    schemes: items![
        hmac(in_header("x-viber-content-signature")).scheme(),
        hmac(Place::Query(text("sig"))).scheme()
    ],
    // A message and what becomes of it share one token; a broadcast has one for all.
    identity: items![
        Identity::Joined(list![json("/event"), json("/message_token"), json("/user_id")]),
        Identity::Joined(list![json("/event"), json("/message_token")])
    ],
    event_type: items![kind(json("/event"))],
    object: items![json("/message_token")],
    version: items![version(json("/timestamp"), Unit::Milliseconds)],
    handshakes: items![asks(POST, Wants::Is(json("/event"), text("webhook"))).signed()],
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "Viber Admin Panel, your bot: its authentication token.",
    sample_type: "message",
    sample_body: r#"{"sender":{"id":"01234567890A=","name":"John McClane"},
        "message":{"type":"text","text":"a message to the service"}}"#,
    sample_object: "4912661846655238145",
    ..BLANK
}
.provider();
