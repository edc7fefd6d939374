//! Formstack: HMAC-SHA256 over the body, hex after `sha256=`, in `X-FS-Signature`.
//!
//! <https://help.formstack.com/s/article/Webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "formstack",
    title: "Formstack",
    docs: "https://help.formstack.com/s/article/Webhooks",
    // FastSpring uses the same header for base64 without a prefix.
    schemes: items![hmac(in_header("x-fs-signature")).prefix("sha256=").scheme()],
    // JSON or a form, as the webhook is set.
    payload: Payload::Any,
    identity: items![Identity::Digest],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Your form, Settings, Emails and actions, Webhook, HMAC key.",
    notes: "Submissions carry no id that is known to be stable; the same content, byte for byte, \
         counts as one event.",
    sample_type: "unknown",
    sample_body: r#"{"FormID":"1234567","UniqueID":"987654321","Email":"alice@example.com"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
