//! GoCardless: HMAC-SHA256 over the body, hex, in `Webhook-Signature`.
//!
//! <https://developer.gocardless.com/getting-started/api/staying-up-to-date-with-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "gocardless",
    title: "GoCardless",
    docs: "https://developer.gocardless.com/getting-started/api/staying-up-to-date-with-webhooks/",
    // Its SDK decodes the digits, so their case does not matter.
    schemes: items![hmac(in_header("webhook-signature")).encoding(Encoding::HexAnyCase).scheme()],
    batches: items![batch("/events")],
    identity: items![id(item("/id"))],
    event_type: items![kind_with(item("/resource_type"), item("/action"))],
    object: items![
        item("/links/refund"),
        item("/links/subscription"),
        item("/links/billing_request"),
        item("/links/payment"),
        item("/links/mandate"),
        item("/links/payout")
    ],
    version: items![version(item("/created_at"), Unit::Iso8601)],
    retry: "Not confirmed: several tries with growing pauses; the whole batch is sent again.",
    find_secret: "Dashboard, Developers, Webhook endpoints, your endpoint, Secret.",
    notes: "GoCardless waits 10 s.",
    sample_type: "payments.confirmed",
    sample_body: r#"{"events":[{"details":{"origin":"gocardless","cause":"payment_confirmed"},
        "links":{}}],"meta":{"webhook_id":"WB123"}}"#,
    sample_object: "RF123",
    ..BLANK
}
.provider();
