//! Tebex: HMAC-SHA256 over the SHA-256 of the body, hex, in `X-Signature`.
//!
//! <https://docs.tebex.io/developers/webhooks/overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "tebex",
    title: "Tebex",
    docs: "https://docs.tebex.io/developers/webhooks/overview",
    schemes: items![
        hmac(in_header("x-signature"))
            .over(list![Part::BodyHash { algorithm: Algorithm::Sha256, encoding: Encoding::Hex }])
            .scheme()
    ],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    version: items![version(json("/date"), Unit::Iso8601)],
    handshakes: items![
        asks(POST, Wants::Is(json("/type"), text("validation.webhook")))
            .challenge(json("/id"))
            .says(Said::Json(list![(text("id"), list![Piece::Challenge])]))
    ],
    retry: "Not documented; expect retries.",
    find_secret: "Creator Panel, Integrations, Webhooks: the secret.",
    notes: "The scheme was read in one catalogue only.",
    sample_type: "payment.completed",
    sample_body: r#"{"subject":{"transaction_id":"tbx-1"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
