//! Dodo Payments: Standard Webhooks.
//!
//! <https://docs.dodopayments.com/developer-resources/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "dodo-payments",
    title: "Dodo Payments",
    docs: "https://docs.dodopayments.com/developer-resources/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, Developer, Webhooks, Signing key (whsec_...).",
    sample_type: "payment.succeeded",
    sample_body: r#"{"business_id":"bus_sample","data":{"payload_type":"Payment"}}"#,
    sample_object: "pay_sample",
    ..BLANK
}
.provider();
