//! Pipedrive: user and password in `Authorization`.
//!
//! <https://pipedrive.readme.io/docs/guide-for-webhooks-v2>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "pipedrive",
    title: "Pipedrive",
    docs: "https://pipedrive.readme.io/docs/guide-for-webhooks-v2",
    schemes: items![BASIC],
    // `/meta/id` is the event in version 2 and the object in version 1.
    identity: items![Identity::Digest],
    event_type: items![kind_with(json("/meta/action"), json("/meta/entity"))],
    object: items![json("/meta/entity_id")],
    version: items![version(json("/meta/timestamp"), Unit::Iso8601)],
    // Counts the attempts.
    volatile: items![text("/meta/attempt")],
    retry: "Three retries: after 3, 30 and 150 s; ten failures suspend the webhook for 30 minutes.",
    retry_hours: 1,
    find_secret: "The HTTP auth user and password of the webhook, written as user:password.",
    notes: "Nothing is signed: the password proves who sent a request, not what was sent. After \
         three days without success Pipedrive deletes the webhook. It waits 10 s.",
    sample_type: "change.deal",
    sample_body: r#"{"meta":{"version":"2.0","webhook_id":"sample","attempt":1},
        "data":{"title":"A sample"},"previous":null}"#,
    sample_object: "42",
    ..BLANK
}
.provider();
