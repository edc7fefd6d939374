//! Whop: Standard Webhooks.
//!
//! <https://docs.whop.com/developer/guides/webhooks>

use super::family::{BY_WEBHOOK, Member, WEBHOOK_ID};
use super::{json, kind};
use crate::provider::Provider;

pub(super) static WHOP: Provider = Member {
    name: "whop",
    title: "Whop",
    docs: "https://docs.whop.com/developer/guides/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, Developer, Webhooks, your webhook, Secret.",
    notes: "",
    sample_type: "payment.succeeded",
    sample_body: r#"{"api_version":"v1","data":{"status":"paid"}}"#,
    sample_object: "pay_sample",
}
.provider();
