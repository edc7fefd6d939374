//! Twilio with a shared key: HMAC-SHA256 over the URL and the sorted form, base64, in
//! `X-Twilio-Signature`.
//!
//! <https://www.twilio.com/docs/usage/security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "twilio-sharedkey",
    title: "Twilio (shared keys)",
    docs: "https://www.twilio.com/docs/usage/security",
    schemes: items![Scheme::Special(Special::Twilio)],
    // As for `twilio`: without the token, a message has one event per status and a call one per
    // number in its sequence.
    identity: items![
        id(header("i-twilio-idempotency-token")),
        Identity::Joined(list![form("MessageSid"), form("MessageStatus")]),
        Identity::Joined(list![form("CallSid"), form("CallStatus"), form("SequenceNumber")]),
        Identity::Digest,
    ],
    event_type: items![
        kind(form("EventType")),
        kind_after("message.", form("MessageStatus")),
        kind_after("message.", form("SmsStatus")),
        kind_after("call.", form("CallStatus")),
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
    retry: "As the rule of the key says.",
    find_secret: "Console, Account, Webhook security, your shared key.",
    notes: "In public beta. The URL is signed, so Oncebox must know the public URL exactly as set \
         at Twilio. Twilio names the hash in a header; a request without it is signed with SHA-1.",
    sample_type: "message.delivered",
    sample_headers: items![
        (text("user-agent"), text("TwilioProxy/1.1")),
        (
            text("x-twilio-webhooks-signature-settings"),
            text("key=sample,algorithm=HMAC_SHA256")
        ),
    ],
    sample_body: "AccountSid=ACsample&From=%2B14150001111&To=%2B14150002222",
    sample_object: "SM00000000000000000000000000000001",
    sample_form: true,
    ..BLANK
}
.provider();
