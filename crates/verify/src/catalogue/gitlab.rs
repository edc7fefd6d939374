//! GitLab: Standard Webhooks with a signing token, or the static `X-Gitlab-Token`.
//!
//! <https://docs.gitlab.com/user/project/integrations/webhooks/>

use super::{WEBHOOK, header, id, json, kind, kind_with, standard, text, version};
use crate::provider::{
    Guard, Identity, KeyEncoding, Provider, Sample, Scheme, Token, TokenKind, Unit,
};

pub(super) static GITLAB: Provider = Provider {
    name: text("gitlab"),
    title: text("GitLab"),
    docs: text("https://docs.gitlab.com/user/project/integrations/webhooks/"),
    // A `whsec_` secret is a signing token and is believed only in a signature; any
    // other secret is a static token. So knowing one never replaces the other, and a
    // signature that is present and can be checked must be right.
    schemes: list![
        standard(&WEBHOOK, KeyEncoding::WhsecOnly),
        Scheme::Token(Token {
            header: text("x-gitlab-token"),
            kind: TokenKind::Plain,
            refuse_whsec: true,
        }),
    ],
    // Older servers send neither header.
    identity: list![id(header("webhook-id")), id(header("idempotency-key")), Identity::Digest,],
    event_type: list![
        kind_with(json("/object_kind"), json("/object_attributes/action")),
        kind(json("/event_name")),
        kind(header("x-gitlab-event")),
    ],
    object: list![json("/object_attributes/id"), json("/checkout_sha"), json("/project/id")],
    version: list![version(json("/object_attributes/updated_at"), Unit::Iso8601)],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text("Never retries by itself; four failures in a row disable the webhook for a while."),
    find_secret: text("Settings, Webhooks, your webhook: Signing token, or else Secret token."),
    notes: text("Prefer the signing token: the static one proves the sender, not the content."),
    sample_type: text("push"),
    sample: Sample {
        headers: list![
            (text("user-agent"), text("GitLab/sample")),
            (text("x-gitlab-event"), text("System Hook")),
        ],
        body: text(r#"{"project":{"id":15,"path_with_namespace":"sample/project"}}"#),
        object: text("23"),
        form: false,
    },
};
