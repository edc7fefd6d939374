//! Plivo: HMAC-SHA256 over the URL, the sorted form and a nonce, base64, in
//! `X-Plivo-Signature-V3`.
//!
//! <https://www.plivo.com/docs/voice/concepts/signature-validation>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "plivo",
    title: "Plivo",
    docs: "https://www.plivo.com/docs/voice/concepts/signature-validation",
    schemes: items![Scheme::Special(Special::Plivo)],
    identity: items![
        Identity::Joined(list![form("MessageUUID"), form("Status")]),
        Identity::Joined(list![form("CallUUID"), form("Event"), form("CallStatus")]),
        Identity::Digest,
    ],
    event_type: items![
        kind_after("message.", form("Status")),
        kind_after("call.", form("Event")),
        kind_after("call.", form("CallStatus")),
    ],
    object: items![form("MessageUUID"), form("CallUUID")],
    // A form can be split otherwise and still verify.
    guard: Guard::Signed,
    answer: Some(Answer::Status(200)),
    twins: hold(
        "The signature covers the characters of a form and not where its fields end: a copy can be \
         cut otherwise.",
    ),
    conflicts_are_news: Some(
        "A call comes under one event and state several times, each time with other digits.",
    ),
    retry: "Not documented; the fallback URL of an application is tried after a failure.",
    find_secret: "Console, Overview, Auth Token.",
    notes: "The URL is signed, so Oncebox must know the public URL exactly as set at Plivo. A form \
         is signed without separators, and there is no time but a nonce. Only version 3 of the \
         signature is accepted.",
    sample_type: "message.delivered",
    sample_body: "From=14150001111&To=14150002222&TotalAmount=0.00350&Units=1",
    sample_object: "e1b1c5ca-0000-11ef-8c2f-0242ac110005",
    sample_form: true,
    ..BLANK
}
.provider();
