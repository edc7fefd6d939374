//! Snyk: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature`.
//!
//! <https://docs.snyk.io/snyk-api/using-specific-snyk-apis/webhooks-apis>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "snyk",
    title: "Snyk",
    docs: "https://docs.snyk.io/snyk-api/using-specific-snyk-apis/webhooks-apis",
    schemes: items![hmac(in_header("x-hub-signature")).prefix("sha256=").scheme()],
    // Whether a retry keeps `X-Snyk-Transport-ID` is not known.
    identity: items![Identity::Digest],
    event_type: items![kind(header("x-snyk-event"))],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The secret that was given to the call that created the webhook.",
    notes: "The type is not signed. The scheme was not read again at Snyk.",
    sample_type: "project_snapshot/v0",
    sample_body: r#"{"project":{"id":"sample","name":"A sample"},"newIssues":[],
        "removedIssues":[]}"#,
    sample_object: "",
    ..BLANK
}
.provider();
