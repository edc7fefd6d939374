//! Wise: RSA with SHA-256 over the body, base64, in `X-Signature-SHA256`.
//!
//! <https://docs.wise.com/guides/developer/webhooks/event-handling>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "wise",
    title: "Wise",
    docs: "https://docs.wise.com/guides/developer/webhooks/event-handling",
    schemes: items![
        signed_by(Algorithm::RsaSha256, in_header("x-signature-sha256")).scheme()
    ],
    identity: items![id(header("x-delivery-id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/data/resource/id")],
    version: items![
        version(json("/data/occurred_at"), Unit::Iso8601),
        version(json("/sent_at"), Unit::Iso8601),
    ],
    // Sent when a subscription is made, to see whether anybody is there.
    handshakes: items![
        asks(POST, Wants::Is(header("x-test-notification"), text("true"))).signed()
    ],
    twins: hold("Each body says when it was sent."),
    retry: "Up to 25 times over two weeks.",
    retry_hours: 336,
    find_secret: "The documentation has a public key for production and one for the sandbox.",
    notes: "The older signature with SHA-1, in `X-Signature`, is not accepted.",
    sample_type: "transfers#state-change",
    sample_body: r#"{"data":{"resource":{"type":"transfer","profile_id":222,"account_id":333},
        "current_state":"outgoing_payment_sent","previous_state":"processing"},
        "subscription_id":"01234567-89ab-cdef-0123-456789abcdef","schema_version":"2.0.0"}"#,
    sample_object: "111",
    ..BLANK
}
.provider();
