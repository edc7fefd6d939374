//! Tailscale: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `Tailscale-Webhook-Signature`.
//!
//! <https://tailscale.com/kb/1213/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "tailscale",
    title: "Tailscale",
    docs: "https://tailscale.com/kb/1213/webhooks",
    schemes: items![
        hmac(label("tailscale-webhook-signature", ",", "v1"))
            .stamp(label("tailscale-webhook-signature", ",", "t"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    batches: items![batch("")],
    identity: items![Identity::Digest],
    event_type: items![kind(item("/type"))],
    version: items![version(item("/timestamp"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Admin console, Settings, Webhooks, your webhook, Secret (tskey-webhook-...).",
    sample_type: "nodeCreated",
    sample_body: r#"[{"version":1,"tailnet":"example.com","message":"Node created",
        "data":{"nodeID":"sample"}}]"#,
    sample_object: "",
    ..BLANK
}
.provider();
