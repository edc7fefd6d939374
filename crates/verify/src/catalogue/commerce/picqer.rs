//! Picqer: HMAC-SHA256 over the body, base64, in `X-Picqer-Signature`.
//!
//! <https://picqer.com/en/api/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "picqer",
    title: "Picqer",
    docs: "https://picqer.com/en/api/webhooks",
    schemes: items![hmac(in_header("x-picqer-signature")).base64().scheme()],
    // `/idhook` names the webhook, not the event.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event"))],
    retry: "Not confirmed: 15 tries over 17 hours; then the webhook is disabled.",
    retry_hours: 17,
    find_secret: "The secret that you chose when you made the webhook.",
    notes: "Picqer waits 10 s.",
    sample_type: "orders.created",
    sample_body: r#"{"idhook":1,"name":"Orders","data":{"idorder":1}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
