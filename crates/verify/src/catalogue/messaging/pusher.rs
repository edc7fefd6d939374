//! Pusher Channels: HMAC-SHA256 over the body, hex, in `X-Pusher-Signature`.
//!
//! <https://pusher.com/docs/channels/server_api/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "pusher",
    title: "Pusher Channels",
    docs: "https://pusher.com/docs/channels/server_api/webhooks/",
    // `X-Pusher-Key` names the secret; we try all of them.
    schemes: items![hmac(in_header("x-pusher-signature")).scheme()],
    settings: items![said_in(
        "x-pusher-key",
        "key",
        "The key of the app; requests that name another are refused.",
    )],
    batches: items![batch("/events")],
    // The time of the batch, and what happened.
    identity: items![Identity::JoinedDigest(list![json("/time_ms")])],
    event_type: items![kind(item("/name"))],
    object: items![item("/channel")],
    version: items![version(json("/time_ms"), Unit::Milliseconds)],
    retry: "Growing pauses for five minutes.",
    retry_hours: 1,
    find_secret: "Dashboard, your app, App Keys: the secret.",
    notes: "Pusher waits 4 s.",
    sample_type: "channel_occupied",
    sample_body: r#"{"events":[{}]}"#,
    sample_object: "sample-channel",
    ..BLANK
}
.provider();
