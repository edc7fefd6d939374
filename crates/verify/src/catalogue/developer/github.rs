//! GitHub: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature-256`.
//!
//! <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "github",
    title: "GitHub",
    docs: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
    // The SHA-1 header `X-Hub-Signature` is sent beside it and never looked at.
    schemes: items![hmac(in_header("x-hub-signature-256")).prefix("sha256=").scheme()],
    // Stays the same when a delivery is sent again.
    identity: items![id(header("x-github-delivery"))],
    event_type: items![kind_with(header("x-github-event"), json("/action"))],
    object: items![
        json("/issue/id"),
        json("/pull_request/id"),
        json("/check_run/id"),
        json("/release/id"),
        json("/repository/id"),
    ],
    version: items![
        version(json("/issue/updated_at"), Unit::Iso8601),
        version(json("/pull_request/updated_at"), Unit::Iso8601),
    ],
    payload: Payload::FormJson("payload"),
    twins: deliver(
        "Some events have no id or time of their own: two calls of repository_dispatch or \
         workflow_dispatch with the same inputs read the same.",
    ),
    retry: "Never retries by itself; deliveries can be sent again by hand or by API.",
    recovery: "GET /repos/{owner}/{repo}/hooks/{id}/deliveries (organisations and apps have their \
         own) lists three days; POST .../{delivery}/attempts sends one again. \
         `status=failure` leaves out time-outs: list all and compare by guid.",
    find_secret: "Settings, Webhooks, your webhook, Secret: the one you chose there.",
    notes: "Deliveries that take longer than 10 s count as failed.",
    sample_type: "issues.opened",
        sample_headers: items![
            (text("user-agent"), text("GitHub-Hookshot/sample")),
            (text("x-github-hook-id"), text("292430182")),
            (text("x-github-hook-installation-target-type"), text("repository")),
        ],
        sample_body: r#"{"issue":{"number":7,"title":"A question"},"repository":{"id":35129377,
                "full_name":"octocat/hello-world"},"sender":{"login":"octocat","id":1}}"#,
        sample_object: "1",
    ..BLANK
}
.provider();
