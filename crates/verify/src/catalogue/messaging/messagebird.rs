//! MessageBird: a token in `MessageBird-Signature-JWT` (HS256 to HS512) for a URL and a body.
//!
//! <https://developers.messagebird.com/api/#verifying-http-requests>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "messagebird",
    title: "MessageBird (Bird)",
    docs: "https://developers.messagebird.com/api/#verifying-http-requests",
    schemes: items![
        jwt(
            "messagebird-signature-jwt",
            list![JwsAlgorithm::Hs256, JwsAlgorithm::Hs384, JwsAlgorithm::Hs512],
            JwsKeys::Secret
        )
        .claims(list![
            Claim::Is(text("iss"), text("MessageBird")),
            Claim::UrlHash(text("url_hash"), HashForm::Hex),
            Claim::BodyHash(text("payload_hash"), HashForm::Hex),
            Claim::Expires,
        ])
        .scheme()
    ],
    // The token's own id is another on every attempt.
    identity: items![
        Identity::Joined(list![json("/id"), json("/status")]),
        Identity::Joined(list![json("/message/id"), json("/message/status")]),
        Identity::Digest,
    ],
    event_type: items![kind(json("/type")), kind(json("/status"))],
    object: items![json("/id"), json("/message/id")],
    retry: "Not documented for every product; SMS reports are retried ten times.",
    find_secret: "Dashboard, Developers, Settings, Signed requests: the signing key.",
    notes: "The older MessageBird-Signature is not read. The URL is signed with its query: set \
         `public_url` behind a proxy.",
    sample_type: "delivered",
    sample_body: r#"{"recipient":"31612345678","statusDatetime":"2026-01-02T03:04:05+00:00"}"#,
    sample_object: "efa6405d518d4c0c88cce11f7db775fb",
    ..BLANK
}
.provider();
