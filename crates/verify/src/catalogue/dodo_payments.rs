//! Dodo Payments: Standard Webhooks.
//!
//! <https://docs.dodopayments.com/developer-resources/webhooks>

use super::family::{BY_WEBHOOK, Member, WEBHOOK_ID};
use super::{json, kind};
use crate::provider::Provider;

pub(super) static DODO_PAYMENTS: Provider = Member {
    name: "dodo-payments",
    title: "Dodo Payments",
    docs: "https://docs.dodopayments.com/developer-resources/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, Developer, Webhooks, Signing key (whsec_...).",
    notes: "",
    sample_type: "payment.succeeded",
    sample_body: r#"{"business_id":"bus_sample","data":{"payload_type":"Payment"}}"#,
    sample_object: "pay_sample",
}
.provider();
