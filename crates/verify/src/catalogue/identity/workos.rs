//! WorkOS: HMAC-SHA256 over `{milliseconds}.{body}`, hex, in `WorkOS-Signature`.
//!
//! <https://workos.com/docs/events/data-syncing/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "workos",
    title: "WorkOS",
    docs: "https://workos.com/docs/events/data-syncing/webhooks",
    schemes: items![
        hmac(label("workos-signature", ",", "v1"))
            .stamp(label("workos-signature", ",", "t"), MILLISECONDS, 180)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/event"))],
    object: items![json("/data/id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    answer: Some(Answer::Status(200)),
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Dashboard, Developer, Webhooks, your endpoint, Signing secret.",
    sample_type: "dsync.user.created",
    sample_body: r#"{"data":{"object":"directory_user","state":"active","emails":[]}}"#,
    sample_object: "directory_user_sample",
    ..BLANK
}
.provider();
