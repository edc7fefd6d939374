//! Jira: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature`.
//!
//! <https://developer.atlassian.com/cloud/jira/platform/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "jira",
    title: "Jira",
    docs: "https://developer.atlassian.com/cloud/jira/platform/webhooks/",
    schemes: items![hmac(in_header("x-hub-signature")).prefix("sha256=").scheme()],
    // Stays the same on a retry; Data Center sends none.
    identity: items![id(header("x-atlassian-webhook-identifier")), Identity::Digest],
    event_type: items![kind_with(json("/webhookEvent"), json("/issue_event_type_name"))],
    object: items![json("/issue/id")],
    version: items![version(json("/timestamp"), Unit::Milliseconds)],
    twins: hold("Each body has the time of the event in milliseconds."),
    retry: "Up to five tries, 5 to 15 minutes apart, after 408, 409, 425, 429 and 5xx.",
    retry_hours: 2,
    find_secret: "System, Webhooks, your webhook, Secret; or the secret given to the REST API.",
    notes: "Confluence signs in the same way. Connect apps send a token instead: see \
         atlassian-connect. Webhooks made by apps expire after 30 days. Jira waits 30 s.",
    sample_type: "jira:issue_updated.issue_generic",
    sample_body: r#"{"user":{"accountId":"99:27935d01-92a7-4687-8272-a9b8d3b2ae2e"},
        "issue":{"key":"SAM-1","fields":{"summary":"A sample","status":{"name":"Done"}}}}"#,
    sample_object: "99291",
    ..BLANK
}
.provider();
