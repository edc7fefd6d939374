//! ShipBob: Standard Webhooks; the type is in a header.
//!
//! <https://developer.shipbob.com/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "shipbob",
    title: "ShipBob",
    docs: "https://developer.shipbob.com/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(header("x-webhook-topic"))],
    retry: "Not documented; expect retries.",
    find_secret: "The API answers with the secret (whsec_...) when the subscription is made.",
    sample_type: "order.shipped",
    sample_body: r#"{"status":"Completed"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
