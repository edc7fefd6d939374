//! Discourse: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Discourse-Event-Signature`.
//!
//! <https://docs.discourse.org/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "discourse",
    title: "Discourse",
    docs: "https://docs.discourse.org/",
    schemes: items![hmac(in_header("x-discourse-event-signature")).prefix("sha256=").scheme()],
    // Whether a retry keeps `X-Discourse-Event-Id` is not known. One user may come under several
    // types.
    identity: items![
        Identity::JoinedDigest(list![header("x-discourse-event")]),
        Identity::Digest
    ],
    event_type: items![kind(header("x-discourse-event"))],
    object: items![json("/post/id"), json("/topic/id"), json("/user/id")],
    twins: hold("The same type and body is a duplicate; only a copy without its type is a twin."),
    types_share_body: Some(
        "The type is a header and the body is the bare post, topic or user: user_created and \
         user_approved may have one body.",
    ),
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Admin, API, Webhooks, your webhook, Secret: the one you chose there.",
    notes: "The type is not signed. A webhook without a secret is not signed and refused here. \
         Discourse waits 20 s.",
    sample_type: "post_created",
    sample_headers: items![(text("x-discourse-event-type"), text("post"))],
    sample_body: r#"{"post":{"username":"alice","cooked":"<p>hello</p>"}}"#,
    sample_object: "42",
    ..BLANK
}
.provider();
