//! Twilio: HMAC-SHA1 over the URL and the sorted form, base64, in `X-Twilio-Signature`.
//!
//! <https://www.twilio.com/docs/usage/security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "twilio",
    title: "Twilio",
    docs: "https://www.twilio.com/docs/usage/security",
    schemes: items![Scheme::Special(Special::Twilio)],
    // Without the token, a message has one event per status and a call one per
    // number in its sequence. The other requests of a call have nothing of their own.
    identity: items![
        id(header("i-twilio-idempotency-token")),
        Identity::Joined(list![form("MessageSid"), form("MessageStatus")]),
        Identity::Joined(list![form("CallSid"), form("CallStatus"), form("SequenceNumber")]),
        Identity::Digest,
    ],
    event_type: items![
        TypeRule { text: text(""), first: form("EventType"), then: None },
        TypeRule { text: text("message."), first: form("MessageStatus"), then: None },
        TypeRule { text: text("message."), first: form("SmsStatus"), then: None },
        TypeRule { text: text("call."), first: form("CallStatus"), then: None },
    ],
    object: items![form("MessageSid"), form("CallSid"), form("ConversationSid")],
    // A form can be split otherwise, even between its URL and its body, and still verify.
    guard: Guard::Signed,
    // Twilio reads the answer as TwiML: these are no instructions.
    answer: Some(Answer::Exactly { status: 200, content_type: "text/xml", body: "<Response/>" }),
    twins: hold(
        "The signature covers the characters of a form and not where its fields end: a copy can be \
         cut otherwise.",
    ),
    retry: "Not by default; `#rc=` in the URL asks for retries.",
    find_secret: "Console, Account, API keys and tokens, Auth token; or a shared key.",
    notes: "The URL is signed, so Oncebox must know the public URL exactly as set at Twilio. A form \
         is signed without separators; JSON is covered by its hash in the query.",
    sample_type: "message.delivered",
        sample_headers: items![(text("user-agent"), text("TwilioProxy/1.1"))],
        sample_body: "AccountSid=ACsample&From=%2B14150001111&To=%2B14150002222&ApiVersion=2010-04-01",
        sample_object: "SM00000000000000000000000000000001",
        sample_form: true,
    ..BLANK
}
.provider();
