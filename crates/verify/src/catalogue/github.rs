//! GitHub: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature-256`.
//!
//! <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>

use super::{body_hmac, header, id, json, kind_with, text, version};
use crate::provider::{Encoding, Guard, Provider, Sample, Unit};

pub(super) static GITHUB: Provider = Provider {
    name: text("github"),
    title: text("GitHub"),
    docs: text("https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries"),
    // The SHA-1 header `X-Hub-Signature` is sent beside it and never looked at.
    schemes: list![body_hmac("x-hub-signature-256", "sha256=", Encoding::Hex)],
    // Stays the same when a delivery is sent again.
    identity: list![id(header("x-github-delivery"))],
    event_type: list![kind_with(header("x-github-event"), json("/action"))],
    object: list![
        json("/issue/id"),
        json("/pull_request/id"),
        json("/check_run/id"),
        json("/release/id"),
        json("/repository/id"),
    ],
    version: list![
        version(json("/issue/updated_at"), Unit::Iso8601),
        version(json("/pull_request/updated_at"), Unit::Iso8601),
    ],
    volatile: list![],
    guard: Guard::Content,
    form_payload: Some(text("payload")),
    handshake: None,
    answer: None,
    retry: text("Never retries by itself; deliveries can be sent again by hand or by API."),
    find_secret: text("Settings, Webhooks, your webhook, Secret: the one you chose there."),
    notes: text("Deliveries that take longer than 10 s count as failed."),
    sample_type: text("issues.opened"),
    sample: Sample {
        headers: list![
            (text("user-agent"), text("GitHub-Hookshot/sample")),
            (text("x-github-hook-id"), text("292430182")),
            (text("x-github-hook-installation-target-type"), text("repository")),
        ],
        body: text(
            r#"{"issue":{"number":7,"title":"A question"},"repository":{"id":35129377,
                "full_name":"octocat/hello-world"},"sender":{"login":"octocat","id":1}}"#,
        ),
        object: text("1"),
        form: false,
    },
};
