//! Clerk: Standard Webhooks, delivered by Svix.
//!
//! <https://clerk.com/docs/webhooks/overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "clerk",
    title: "Clerk",
    docs: "https://clerk.com/docs/webhooks/overview",
    schemes: BY_SVIX,
    identity: SVIX_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![
        version(json("/data/updated_at"), Unit::Milliseconds),
        version(json("/timestamp"), Unit::Milliseconds)
    ],
    retry: "On the schedule of Svix: eight tries over about a day.",
    retry_hours: 28,
    find_secret: "Dashboard, Webhooks, your endpoint, Signing Secret (whsec_...).",
    sample_type: "user.created",
    sample_body: r#"{"object":"event","data":{"object":"user","first_name":"Example"}}"#,
    sample_object: "user_sample",
    ..BLANK
}
.provider();
