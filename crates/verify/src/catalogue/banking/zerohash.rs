//! Zero Hash: HMAC-SHA256 over `{body}{timestamp}`, hex, in `x-zh-hook-signature`.
//!
//! <https://docs.zerohash.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "zerohash",
    title: "Zero Hash",
    docs: "https://docs.zerohash.com/docs/webhooks",
    schemes: items![
        hmac(in_header("x-zh-hook-signature"))
            .stamp(in_header("x-zh-hook-timestamp"), MILLISECONDS, 300)
            .over(list![BODY, TIME])
            .scheme()
    ],
    // `x-zh-hook-notification-id` is not signed, and nobody says that a retry keeps it.
    identity: items![Identity::Digest],
    event_type: items![kind(header("x-zh-hook-payload-type"))],
    retry: "Not documented; expect retries.",
    find_secret: "The secret that Zero Hash gave you for the webhook.",
    notes: "The scheme was read in one catalogue only.",
    sample_type: "participant_status_changed",
    sample_body: r#"{"participant_code":"ABC123"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
