//! ShipHero: HMAC-SHA256 over the body, base64, in `x-shiphero-hmac-sha256`.
//!
//! <https://developer.shiphero.com/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "shiphero",
    title: "ShipHero",
    docs: "https://developer.shiphero.com/webhooks/",
    schemes: items![hmac(in_header("x-shiphero-hmac-sha256")).base64().scheme()],
    // `X-Shiphero-Message-ID` is not signed, and nobody says that a retry keeps it.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/webhook_type"))],
    answer: Some(Answer::Status(200)),
    retry: "Not confirmed: five times.",
    find_secret: "The API answers with shared_signature_secret when the webhook is made.",
    notes: "ShipHero waits 10 s.",
    sample_type: "Shipment Update",
    sample_body: r#"{"fulfillment":{"order_number":"1001"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
