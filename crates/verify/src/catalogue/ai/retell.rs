//! Retell AI: HMAC-SHA256 over `{body}{timestamp}`, hex, in `X-Retell-Signature`.
//!
//! <https://docs.retellai.com/features/secure-webhook>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "retell",
    title: "Retell AI",
    docs: "https://docs.retellai.com/features/secure-webhook",
    schemes: items![
        hmac(label("x-retell-signature", ",", "d"))
            .stamp(label("x-retell-signature", ",", "v"), MILLISECONDS, 300)
            .over(list![BODY, TIME])
            .scheme()
    ],
    // Each happens once in a call.
    identity: items![
        Identity::Joined(list![json("/event"), json("/call/call_id")]),
        Identity::Digest
    ],
    event_type: items![kind(json("/event"))],
    object: items![json("/call/call_id")],
    conflicts_are_news: Some("The identity names the call: transcript_updated comes several times in one."),
    retry: "Up to three retries.",
    find_secret: "Dashboard, API keys: the key with the webhook badge.",
    notes: "An event that comes more than once in a call, such as an update of the transcript, \
         is kept the first time and set aside as a conflict afterwards. Retell waits 10 s.",
    sample_type: "call_ended",
    sample_body: r#"{"call":{"call_type":"phone_call","call_status":"ended"}}"#,
    sample_object: "Jabr9TXYYJHfvl6Syypi88rdAHYHmcq6",
    ..BLANK
}
.provider();
