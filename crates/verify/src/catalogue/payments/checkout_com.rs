//! Checkout.com: HMAC-SHA256 over the body, hex, in `Cko-Signature`.
//!
//! <https://www.checkout.com/docs/developer-resources/webhooks/webhook-security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "checkout-com",
    title: "Checkout.com",
    docs: "https://www.checkout.com/docs/developer-resources/webhooks/webhook-security",
    schemes: items![hmac(in_header("cko-signature")).scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/created_on"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    recovery: "Events of the last 90 days can be sent again by workflow, event or subject.",
    find_secret: "Dashboard, Developers, Workflows, your webhook action, Signature key.",
    notes: "The scheme was not read again at Checkout.com.",
    sample_type: "payment_approved",
    sample_body: r#"{"data":{"amount":2000,"currency":"GBP","reference":"ORD-5023-4E89"}}"#,
    sample_object: "pay_mbabizu24mvu3mela5njyhpit4",
    ..BLANK
}
.provider();
