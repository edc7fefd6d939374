//! Meta: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature-256`.
//!
//! <https://developers.facebook.com/docs/graph-api/webhooks/getting-started>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "meta",
    title: "Meta (Facebook, Instagram, Messenger, WhatsApp)",
    docs: "https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
    schemes: items![hmac(in_header("x-hub-signature-256")).prefix("sha256=").scheme()],
    settings: items![optional(
        "verify_token",
        "The verify token given to Meta with the URL; a secret where it is the same."
    )],
    batches: items![Batch {
        items: text("/entry"),
        inner: list![text("/changes"), text("/messaging"), text("/standby")],
    }],
    // A message has an id. A change may hold several, which may come again in other company, so
    // it is known by all that it says.
    identity: items![
        id(item("/message/mid")),
        Identity::JoinedDigest(list![outer("/id"), outer("/time")]),
        Identity::JoinedDigest(list![outer("/id")]),
    ],
    event_type: items![kind_with(json("/object"), item("/field"))],
    object: items![outer("/id")],
    version: items![version(item("/timestamp"), Unit::Milliseconds)],
    handshakes: items![
        asks(GET, Wants::Is(query("hub.mode"), text("subscribe")))
            .token(query("hub.verify_token"), "verify_token")
            .challenge(query("hub.challenge"))
            .says(ECHO)
    ],
    answer: Some(Answer::Status(200)),
    conflicts_are_news: Some("A message that its sender deletes comes again under its id."),
    retry: "At once, then less and less often for 36 hours (WhatsApp: up to 7 days).",
    retry_hours: 168,
    find_secret: "App dashboard, App settings, Basic, App secret.",
    notes: "Up to 1000 updates come in one request; every change and every message becomes an \
         event. A change of WhatsApp may hold several messages. The SHA-1 beside the signature is \
         not looked at.",
    sample_type: "whatsapp_business_account.messages",
    sample_body: r#"{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{
            "field":"messages","value":{"messaging_product":"whatsapp",
            "metadata":{"display_phone_number":"15550000000","phone_number_id":"1"},
            "messages":[{"from":"14150001111","id":"wamid.sample","timestamp":"1760000000",
            "type":"text","text":{"body":"Hello"}}]}}]}]}"#,
    sample_object: "102290129340398",
    ..BLANK
}
.provider();
