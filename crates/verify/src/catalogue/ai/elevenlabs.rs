//! ElevenLabs: HMAC-SHA256 over `{timestamp}.{body}`, hex, labelled `v0`.
//!
//! <https://elevenlabs.io/docs/product-guides/administration/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "elevenlabs",
    title: "ElevenLabs",
    docs: "https://elevenlabs.io/docs/product-guides/administration/webhooks",
    schemes: items![
        hmac(label("elevenlabs-signature", ",", "v0"))
            .stamp(label("elevenlabs-signature", ",", "t"), SECONDS, 1800)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/conversation_id")],
    version: items![version(json("/event_timestamp"), Unit::Seconds)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Webhooks, your webhook: the secret (wsec_...), shown once.",
    notes: "Half an hour is what the SDK allows.",
    sample_type: "post_call_transcription",
    sample_body: r#"{"data":{"agent_id":"sample","status":"done"}}"#,
    sample_object: "conv_sample",
    ..BLANK
}
.provider();
