//! Veriff: HMAC-SHA256 over the body, hex, in `x-hmac-signature`.
//!
//! <https://devdocs.veriff.com/docs/hmac-authentication-and-endpoint-security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "veriff",
    title: "Veriff",
    docs: "https://devdocs.veriff.com/docs/hmac-authentication-and-endpoint-security",
    schemes: items![hmac(in_header("x-hmac-signature")).scheme()],
    identity: items![Identity::Digest],
    // A decision has a status, an event an action.
    event_type: items![kind(json("/verification/status")), kind(json("/action"))],
    object: items![json("/verification/id"), json("/id")],
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "Station, your integration, Settings: the shared secret key.",
    notes: "The scheme was not read again at Veriff.",
    sample_type: "approved",
    sample_body: r#"{"status":"success","verification":{"code":9001}}"#,
    sample_object: "12df6045-3846-3e45-946a-14fa6136d78b",
    ..BLANK
}
.provider();
