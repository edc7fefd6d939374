//! AiPrise: HMAC-SHA256 over the body, hex, in `X-HMAC-SIGNATURE`.
//!
//! <https://docs.aiprise.com/docs/callbacks-authentication>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "aiprise",
    title: "AiPrise",
    docs: "https://docs.aiprise.com/docs/callbacks-authentication",
    experimental: true,
    schemes: items![hmac(in_header("x-hmac-signature")).scheme()],
    identity: items![Identity::Digest],
    retry: "Not documented; expect retries.",
    find_secret: "Dashboard, Settings: the private API key.",
    notes: "The scheme was read in one catalogue only. Where the type of an event is, is not \
         known.",
    sample_type: "unknown",
    sample_body: r#"{"status":"COMPLETED"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
