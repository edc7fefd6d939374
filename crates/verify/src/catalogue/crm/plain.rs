//! Plain: HMAC-SHA256 over the body, hex; the time of the attempt is in the body.
//!
//! <https://www.plain.com/docs/api-reference/request-signing>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "plain",
    title: "Plain",
    docs: "https://www.plain.com/docs/api-reference/request-signing",
    schemes: items![
        hmac(in_header("plain-request-signature"))
            .stamp(Place::Json(text("/webhookMetadata/webhookDeliveryAttemptTimestamp")), ISO, 300)
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/payload/thread/id"), json("/payload/customer/id")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    // Tells of the attempt.
    volatile: items![text("/webhookMetadata")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Request signing, HMAC secret.",
    sample_type: "thread.thread_created",
    sample_body: r#"{"workspaceId":"w_sample","payload":{"eventType":"thread.thread_created"},
        "webhookMetadata":{"webhookDeliveryAttemptNumber":1}}"#,
    sample_object: "th_01HD44FHMCDSSWE38N14FSYV6K",
    ..BLANK
}
.provider();
