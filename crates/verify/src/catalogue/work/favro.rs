//! Favro: HMAC-SHA1 over `{payloadId}{URL}`, base64, in `X-Favro-Webhook`.
//!
//! <https://favro.com/developer/#webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "favro",
    title: "Favro",
    docs: "https://favro.com/developer/#webhooks",
    schemes: items![
        hmac(in_header("x-favro-webhook"))
            .sha1()
            .base64()
            .over(list![Part::Json(text("/payloadId")), Part::Url])
            .scheme()
    ],
    identity: items![id(json("/payloadId"))],
    event_type: items![kind(json("/action"))],
    // Only the id of the payload, so it stands for the event.
    guard: Guard::Signed,
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The secret that was given when the webhook was made.",
    notes: "The body is not signed, only its id and the URL, which Oncebox must know exactly as \
         set at Favro: read the card again before acting on it. The scheme was read in one \
         catalogue only, not at Favro.",
    sample_type: "created",
    sample_body: r#"{"card":{"cardId":"sample","name":"A sample"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
