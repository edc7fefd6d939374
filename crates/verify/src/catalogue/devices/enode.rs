//! Enode: HMAC-SHA1 over the body, hex after `sha1=`, in `x-enode-signature`.
//!
//! <https://developers.enode.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "enode",
    title: "Enode",
    docs: "https://developers.enode.com/docs/webhooks",
    schemes: items![hmac(in_header("x-enode-signature")).sha1().prefix("sha1=").scheme()],
    batches: items![batch("")],
    // `x-enode-delivery` is not signed, and nobody says that a retry keeps it.
    identity: items![Identity::Digest],
    event_type: items![kind(item("/event"))],
    version: items![version(item("/createdAt"), Unit::Iso8601)],
    retry: "Not confirmed: for 24 hours; then the webhook is disabled.",
    retry_hours: 24,
    find_secret: "The secret that you chose when you made the webhook.",
    notes: "Enode waits 5 s.",
    sample_type: "user:vehicle:updated",
    sample_body: r#"[{"version":"2024-10-01","user":{"id":"sample"}}]"#,
    sample_object: "",
    ..BLANK
}
.provider();
