//! Polar: Standard Webhooks, keyed with the text of the secret.
//!
//! <https://polar.sh/docs/integrate/webhooks/delivery>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "polar",
    title: "Polar",
    docs: "https://polar.sh/docs/integrate/webhooks/delivery",
    schemes: items![standard(&WEBHOOK, KeyForm::Text)],
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/data/modified_at"), Unit::Iso8601)],
    retry: "Up to ten retries with growing pauses; ten failures in a row disable the endpoint.",
    find_secret: "Settings, Webhooks, your endpoint: the secret as shown.",
    notes: "Only the Raw format is signed JSON. The secret is never decoded, \
            whatever it looks like.",
    sample_type: "order.created",
    sample_body: r#"{"data":{"status":"paid"}}"#,
    sample_object: "order_sample",
    ..BLANK
}
.provider();
