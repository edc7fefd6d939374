//! Chargebee: basic authentication; nothing is signed.
//!
//! <https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "chargebee",
    title: "Chargebee",
    docs: "https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings",
    schemes: items![BASIC],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![
        json("/content/subscription/id"),
        json("/content/invoice/id"),
        json("/content/customer/id")
    ],
    version: items![
        version(json("/content/subscription/resource_version"), Unit::Milliseconds),
        version(json("/occurred_at"), Unit::Seconds)
    ],
    // How the delivery of this very event goes.
    volatile: items![text("/webhook_status"), text("/webhooks")],
    retry: "Up to seven retries with growing pauses over about three days, the last one two days \
         after the one before.",
    retry_hours: 79,
    find_secret: "Settings, Configure Chargebee, Webhooks, your webhook, basic \
         authentication: user:password as you set them.",
    notes: "The body is not signed: read the object again before acting. Chargebee waits 20 \
         s.",
    sample_type: "subscription_renewed",
    sample_body: r#"{"object":"event","api_version":"v2","source":"scheduled_job",
        "content":{"subscription":{"status":"active"}}}"#,
    sample_object: "sub_sample",
    ..BLANK
}
.provider();
