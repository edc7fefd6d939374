//! Twilio: HMAC-SHA1 over the URL and the sorted form, base64, in `X-Twilio-Signature`.
//!
//! <https://www.twilio.com/docs/usage/security>

use super::{form, header, id, text};
use crate::provider::{Answer, Guard, Identity, Provider, Sample, Scheme, TypeRule};

pub(super) static TWILIO: Provider = Provider {
    name: text("twilio"),
    title: text("Twilio"),
    docs: text("https://www.twilio.com/docs/usage/security"),
    schemes: list![Scheme::Twilio],
    // Without the token, a message has one event per status and a call one per
    // number in its sequence. The other requests of a call have nothing of their own.
    identity: list![
        id(header("i-twilio-idempotency-token")),
        Identity::Joined(list![form("MessageSid"), form("MessageStatus")]),
        Identity::Joined(list![form("CallSid"), form("CallStatus"), form("SequenceNumber")]),
        Identity::Digest,
    ],
    event_type: list![
        TypeRule { text: text(""), first: form("EventType"), then: None },
        TypeRule { text: text("message."), first: form("MessageStatus"), then: None },
        TypeRule { text: text("message."), first: form("SmsStatus"), then: None },
        TypeRule { text: text("call."), first: form("CallStatus"), then: None },
    ],
    object: list![form("MessageSid"), form("CallSid"), form("ConversationSid")],
    version: list![],
    volatile: list![],
    // A form can be split otherwise, even between its URL and its body, and still verify.
    guard: Guard::Signed,
    form_payload: None,
    handshake: None,
    // Twilio reads the answer as TwiML: these are no instructions.
    answer: Some(Answer::Exactly { status: 200, content_type: "text/xml", body: "<Response/>" }),
    retry: text("Not by default; `#rc=` in the URL asks for retries."),
    find_secret: text("Console, Account, API keys and tokens, Auth token; or a shared key."),
    notes: text(
        "The URL is signed, so Oncebox must know the public URL exactly as set at Twilio. A form \
         is signed without separators; JSON is covered by its hash in the query.",
    ),
    sample_type: text("message.delivered"),
    sample: Sample {
        headers: list![(text("user-agent"), text("TwilioProxy/1.1"))],
        body: text(
            "AccountSid=ACsample&From=%2B14150001111&To=%2B14150002222&ApiVersion=2010-04-01",
        ),
        object: text("SM00000000000000000000000000000001"),
        form: true,
    },
};
