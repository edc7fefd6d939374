//! Alchemy: HMAC-SHA256 over the body, hex, in `X-Alchemy-Signature`.
//!
//! <https://www.alchemy.com/docs/reference/notify-api-quickstart>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "alchemy",
    title: "Alchemy",
    docs: "https://www.alchemy.com/docs/reference/notify-api-quickstart",
    schemes: items![hmac(in_header("x-alchemy-signature")).scheme()],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    version: items![version(json("/createdAt"), Unit::Iso8601)],
    retry: "Not confirmed: for ten minutes to an hour.",
    retry_hours: 1,
    find_secret: "Dashboard, Data, Webhooks, your webhook, Signing key.",
    sample_type: "ADDRESS_ACTIVITY",
    sample_body: r#"{"webhookId":"wh_sample","event":{"network":"ETH_MAINNET","activity":[]}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
