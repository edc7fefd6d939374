//! Smile API: HMAC-SHA512 over the body, hex, in `Smile-Signature`.
//!
//! <https://docs.getsmileapi.com/reference/webhooks-1>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "smile-api",
    title: "Smile API",
    docs: "https://docs.getsmileapi.com/reference/webhooks-1",
    schemes: items![hmac(in_header("smile-signature")).sha512().scheme()],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "Not confirmed: twice.",
    find_secret: "The secret that you chose when you made the webhook.",
    notes: "The scheme was read in one catalogue only.",
    sample_type: "TASK_FINISHED",
    sample_body: r#"{"data":{}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
