//! Twilio with JSON: HMAC-SHA1 over the URL, which holds the hash of the body, base64, in
//! `X-Twilio-Signature`.
//!
//! <https://www.twilio.com/docs/usage/security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "twilio-json",
    title: "Twilio (JSON and Event Streams)",
    docs: "https://www.twilio.com/docs/usage/security",
    schemes: items![Scheme::Special(Special::Twilio)],
    // Event Streams sends arrays of CloudEvents; other products send one object.
    batches: items![batch("")],
    identity: items![
        id(item("/id")),
        id(header("i-twilio-idempotency-token")),
        Identity::Digest,
    ],
    event_type: items![kind(item("/type")), kind(item("/EventType"))],
    object: items![item("/subject"), item("/data/messageSid"), item("/data/callSid")],
    version: items![version(item("/time"), Unit::Iso8601)],
    guard: Guard::Signed,
    answer: Some(Answer::Status(200)),
    retry: "Not documented for all products; Event Streams retries for up to four hours.",
    retry_hours: 4,
    find_secret: "Console, Account, API keys and tokens, Auth token.",
    notes: "The URL is signed, so Oncebox must know the public URL exactly as set at Twilio. The \
         body is covered by its hash in the query, `bodySHA256`, which is checked.",
    sample_type: "com.twilio.messaging.message.delivered",
    sample_headers: items![(text("user-agent"), text("TwilioProxy/1.1"))],
    sample_body: r#"[{"specversion":"1.0","source":"/2010-04-01/Accounts/ACsample/Messages",
            "dataschema":"https://events-schemas.twilio.com/Messaging.MessageStatus/6",
            "datacontenttype":"application/json",
            "data":{"accountSid":"ACsample","messageStatus":"DELIVERED"}}]"#,
    sample_object: "SM00000000000000000000000000000001",
    ..BLANK
}
.provider();
