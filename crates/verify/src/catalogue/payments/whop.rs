//! Whop: Standard Webhooks.
//!
//! <https://docs.whop.com/developer/guides/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "whop",
    title: "Whop",
    docs: "https://docs.whop.com/developer/guides/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, Developer, Webhooks, your webhook, Secret.",
    sample_type: "payment.succeeded",
    sample_body: r#"{"api_version":"v1","data":{"status":"paid"}}"#,
    sample_object: "pay_sample",
    ..BLANK
}
.provider();
