//! Maxio (Chargify): HMAC-SHA256 over the body, hex, in
//! `X-Chargify-Webhook-Signature-Hmac-Sha-256`.
//!
//! <https://docs.maxio.com/hc/en-us/articles/24266136649869-Webhooks-Reference>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "maxio",
    title: "Maxio (Chargify)",
    docs: "https://docs.maxio.com/hc/en-us/articles/24266136649869-Webhooks-Reference",
    schemes: items![hmac(in_header("x-chargify-webhook-signature-hmac-sha-256")).scheme()],
    // Only of a form: the content type is not signed, and must not take the id away.
    identity: items![id(form("id")), Identity::JoinedDigest(list![form("event")])],
    event_type: items![kind(form("event"))],
    object: items![form("payload[subscription][id]")],
    retry: "Not documented; expect retries.",
    recovery: "GET /webhooks.json lists webhooks, POST /webhooks/replay.json sends some again.",
    find_secret: "Config, Settings: the shared key of the site.",
    notes: "The body is a form. The scheme was not read again at Maxio.",
    sample_type: "signup_success",
    sample_body: "payload[site][subdomain]=sample",
    sample_object: "1",
    sample_form: true,
    ..BLANK
}
.provider();
