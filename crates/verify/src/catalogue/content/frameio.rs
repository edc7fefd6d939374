//! Frame.io: HMAC-SHA256 over `v0:{timestamp}:{body}`, hex after `v0=`.
//!
//! <https://developer.adobe.com/frameio/guides/Webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "frameio",
    title: "Frame.io",
    docs: "https://developer.adobe.com/frameio/guides/Webhooks/",
    schemes: items![
        hmac(in_header("x-frameio-signature"))
            .prefix("v0=")
            .stamp(in_header("x-frameio-request-timestamp"), SECONDS, 300)
            .over(list![lit("v0:"), TIME, lit(":"), BODY])
            .scheme()
    ],
    // A notice names what changed, not how or when: the next one may read the same.
    identity: items![Identity::Each],
    event_type: items![kind(json("/type"))],
    object: items![json("/resource/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Shown once when the webhook is made.",
    notes: "A retry is an event of its own. The scheme was not read again at Frame.io.",
    sample_type: "file.ready",
    sample_body: r#"{"resource":{"type":"file"},"user":{"id":"sample"}}"#,
    sample_object: "4e1d2f3a-1111-4b5c-8d6e-7f8091a2b3c4",
    ..BLANK
}
.provider();
