//! Ashby: HMAC-SHA256 over the body, hex after `sha256=`, in `Ashby-Signature`.
//!
//! <https://developers.ashbyhq.com/docs/setting-up-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "ashby",
    title: "Ashby",
    docs: "https://developers.ashbyhq.com/docs/setting-up-webhooks",
    schemes: items![hmac(in_header("ashby-signature")).prefix("sha256=").scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/action"))],
    handshakes: items![asks(POST, Wants::Is(json("/action"), text("ping"))).signed()],
    retry: "Not documented; expect retries.",
    find_secret: "Admin, Integrations, Webhooks, your webhook, Secret token: the one you \
         chose there.",
    notes: "A webhook is saved only if its ping is answered.",
    sample_type: "candidateHire",
    sample_body: r#"{"data":{"application":{"id":"sample"}}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
