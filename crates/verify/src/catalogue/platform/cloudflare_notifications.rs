//! Cloudflare notifications: a secret sent as it is, in `cf-webhook-auth`.
//!
//! <https://developers.cloudflare.com/notifications/get-started/configure-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cloudflare-notifications",
    title: "Cloudflare notifications",
    docs: "https://developers.cloudflare.com/notifications/get-started/configure-webhooks/",
    schemes: items![token("cf-webhook-auth")],
    // A test has neither field.
    identity: items![
        Identity::Joined(list![json("/alert_correlation_id"), json("/ts")]),
        Identity::Digest
    ],
    event_type: items![kind(json("/alert_type"))],
    object: items![json("/policy_id"), json("/account_id")],
    version: items![version(json("/ts"), Unit::Seconds)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Notifications, Destinations, your webhook, Secret: the one you chose there.",
    notes: "The secret proves who sent a request, not what was sent. A webhook without one is \
         refused here. Cloudflare sends a test when the webhook is saved, which must succeed.",
    sample_type: "http_alert_edge_error",
    sample_body: r#"{"name":"A sample","text":"hello","data":{},"account_id":"sample"}"#,
    sample_object: "0da2b59ef118439d8097bdfb215203c9",
    ..BLANK
}
.provider();
