//! Flexport: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature-256`.
//!
//! <https://apidocs.flexport.com/v2/tag/Webhook-Endpoints/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "flexport",
    title: "Flexport",
    docs: "https://apidocs.flexport.com/v2/tag/Webhook-Endpoints/",
    schemes: items![hmac(in_header("x-hub-signature-256")).prefix("sha256=").scheme()],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "Not documented; expect retries.",
    find_secret: "The secret that you chose when you made the webhook endpoint.",
    notes: "The scheme was read in one catalogue only.",
    sample_type: "/shipment#created",
    sample_body: r#"{"_object":"/event","data":{}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
