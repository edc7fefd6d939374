//! X: HMAC-SHA256 over the body, base64 after `sha256=`, in `x-twitter-webhooks-signature`.
//!
//! <https://docs.x.com/x-api/webhooks/introduction>

use crate::catalogue::words::*;

/// The list of a body has a name of its own; these are beside it.
const BESIDE: List<Text> = list![
    text("for_user_id"),
    text("user_has_blocked"),
    text("is_blocked_by"),
    text("apps"),
    text("users"),
];

pub(super) static ENTRY: Provider = Entry {
    name: "x",
    title: "X (account activity)",
    docs: "https://docs.x.com/x-api/webhooks/introduction",
    schemes: items![
        hmac(in_header("x-twitter-webhooks-signature")).base64().prefix("sha256=").scheme()
    ],
    batches: items![
        batch("/tweet_create_events"),
        batch("/tweet_delete_events"),
        batch("/favorite_events"),
        batch("/follow_events"),
        batch("/unfollow_events"),
        batch("/block_events"),
        batch("/unblock_events"),
        batch("/mute_events"),
        batch("/unmute_events"),
        batch("/direct_message_events"),
        batch("/direct_message_indicate_typing_events"),
        batch("/direct_message_mark_read_events"),
    ],
    identity: items![
        Identity::Joined(list![
            item("/id_str"),
            json("/for_user_id"),
            Field::KeyBeside(BESIDE),
        ]),
        Identity::Joined(list![item("/id"), json("/for_user_id"), Field::KeyBeside(BESIDE)]),
        // Only of JSON: the answer to a challenge signs short text that could pass for a form.
        Identity::JoinedDigest(list![Field::KeyBeside(BESIDE)]),
    ],
    event_type: items![kind(Field::KeyBeside(BESIDE))],
    object: items![item("/id_str"), item("/id"), item("/status/id")],
    version: items![
        version(item("/timestamp_ms"), Unit::Milliseconds),
        version(item("/created_timestamp"), Unit::Milliseconds),
    ],
    handshakes: items![
        asks(GET, Wants::Has(query("crc_token"))).challenge(query("crc_token")).says(Said::Json(
            list![(
                text("response_token"),
                list![
                    Piece::Text(text("sha256=")),
                    Piece::Mac(Algorithm::HmacSha256, Encoding::Base64),
                ]
            )]
        ))
    ],
    answer: Some(Answer::Status(200)),
    retry: "Enterprise: up to three tries within 5 minutes. Not documented for others.",
    retry_hours: 1,
    find_secret: "Developer portal, your app, Keys and tokens, API key secret (consumer secret).",
    notes: "X asks for proof of the secret with a CRC token about every hour, and disables the \
         webhook if that fails. Every element of a list becomes an event; those without an id are \
         known by their content.",
    sample_type: "tweet_create_events",
    sample_body: r#"{"for_user_id":"2244994945","tweet_create_events":[{
            "created_at":"Fri Jan 02 03:04:05 +0000 2026","text":"Sample",
            "user":{"id_str":"2244994945","screen_name":"sample"},"timestamp_ms":"1760000000000"}]}"#,
    sample_object: "1050118621198921728",
    ..BLANK
}
.provider();
