//! Pylon: HMAC-SHA256 over `{timestamp}.{body}`, hex after `hs256=`.
//!
//! <https://docs.usepylon.com/pylon-docs/developer/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "pylon",
    title: "Pylon",
    docs: "https://docs.usepylon.com/pylon-docs/developer/webhooks",
    // It retries for more than a day, and does not say that it signs again.
    schemes: items![
        hmac(in_header("pylon-webhook-signature"))
            .prefix("hs256=")
            .undated(in_header("pylon-webhook-timestamp"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    retry: "Not confirmed; five retries over 31 hours are spoken of.",
    retry_hours: 31,
    find_secret: "Settings, Webhooks, your webhook, Secret.",
    notes: "The scheme was read in one catalogue only, not at Pylon. What names the type is not \
         known.",
    sample_type: "unknown",
    sample_body: r#"{"data":{"issue_id":"sample"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
