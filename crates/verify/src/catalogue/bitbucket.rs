//! Bitbucket: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Hub-Signature`.
//!
//! <https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/>

use super::{body_hmac, header, id, json, kind, text, version};
use crate::provider::{Encoding, Guard, Identity, Provider, Sample, Unit};

pub(super) static BITBUCKET: Provider = Provider {
    name: text("bitbucket"),
    title: text("Bitbucket"),
    docs: text("https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/"),
    // Others use this header name for SHA-1; here it is SHA-256.
    schemes: list![body_hmac("x-hub-signature", "sha256=", Encoding::Hex)],
    // Cloud sends the first, Data Center the second.
    identity: list![id(header("x-request-uuid")), id(header("x-request-id")), Identity::Digest,],
    event_type: list![kind(header("x-event-key"))],
    object: list![json("/pullrequest/id"), json("/issue/id"), json("/repository/uuid")],
    version: list![version(json("/pullrequest/updated_on"), Unit::Iso8601)],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text("Up to two more tries after a 5xx or a time-out."),
    find_secret: text("Repository settings, Webhooks, your webhook, Secret."),
    notes: text("A webhook without a secret is sent without a signature and refused here."),
    sample_type: text("pullrequest:updated"),
    sample: Sample {
        headers: list![
            (text("user-agent"), text("Bitbucket-Webhooks/2.0")),
            (text("x-attempt-number"), text("1")),
        ],
        body: text(
            r#"{"pullrequest":{"title":"A change","state":"OPEN"},
                "repository":{"uuid":"{673a6070-3421-46c9-9d48-90745f7bfe8e}"}}"#,
        ),
        object: text("7"),
        form: false,
    },
};
