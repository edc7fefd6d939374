//! Greenhouse: HMAC-SHA256 over the body, hex after `sha256` and a space, in `Signature`.
//!
//! <https://developers.greenhouse.io/webhooks.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "greenhouse",
    title: "Greenhouse",
    docs: "https://developers.greenhouse.io/webhooks.html",
    schemes: items![hmac(in_header("signature")).prefix("sha256 ").scheme()],
    // `Greenhouse-Event-ID` is not signed, and nobody says that a retry keeps it.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/action"))],
    handshakes: items![asks(POST, Wants::Is(json("/action"), text("ping"))).signed()],
    retry: "Not documented; expect retries.",
    find_secret: "Configure, Dev Center, Web Hooks, your web hook, Secret key: the one you \
         chose there.",
    sample_type: "hire_candidate",
    sample_body: r#"{"payload":{"application":{"id":1}}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
