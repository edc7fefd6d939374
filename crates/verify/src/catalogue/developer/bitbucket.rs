//! Bitbucket: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature`.
//!
//! <https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "bitbucket",
    title: "Bitbucket",
    docs: "https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
    // Others use this header name for SHA-1; here it is SHA-256.
    schemes: items![hmac(in_header("x-hub-signature")).prefix("sha256=").scheme()],
    // Cloud sends the first, Data Center the second.
    identity: items![id(header("x-request-uuid")), id(header("x-request-id")), Identity::Digest,],
    event_type: items![kind(header("x-event-key"))],
    object: items![json("/pullrequest/id"), json("/issue/id"), json("/repository/uuid")],
    version: items![version(json("/pullrequest/updated_on"), Unit::Iso8601)],
    twins: deliver(
        "A push has no id or time of its own: a branch that is moved back and forth sends the same \
         body again.",
    ),
    types_share_body: Some(
        "The type is a header: an approval that is given and withdrawn may have one body.",
    ),
    retry: "Up to two more tries after a 5xx or a time-out.",
    retry_hours: 1,
    find_secret: "Repository settings, Webhooks, your webhook, Secret.",
    notes: "A webhook without a secret is sent without a signature and refused here.",
    sample_type: "pullrequest:updated",
        sample_headers: items![
            (text("user-agent"), text("Bitbucket-Webhooks/2.0")),
            (text("x-attempt-number"), text("1")),
        ],
        sample_body: r#"{"pullrequest":{"title":"A change","state":"OPEN"},
                "repository":{"uuid":"{673a6070-3421-46c9-9d48-90745f7bfe8e}"}}"#,
        sample_object: "7",
    ..BLANK
}
.provider();
