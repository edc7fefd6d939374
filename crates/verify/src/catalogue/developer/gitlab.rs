//! GitLab: Standard Webhooks with a signing token, or the static `X-Gitlab-Token`.
//!
//! <https://docs.gitlab.com/user/project/integrations/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "gitlab",
    title: "GitLab",
    docs: "https://docs.gitlab.com/user/project/integrations/webhooks/",
    // A `whsec_` secret is a signing token and is believed only in a signature; any
    // other secret is a static token. So knowing one never replaces the other, and a
    // signature that is present and can be checked must be right.
    schemes: items![
        standard(&WEBHOOK, KeyForm::WhsecOnly),
        Scheme::Token(Token {
            place: TokenPlace::Header(text("x-gitlab-token")),
            kind: TokenKind::Plain,
            refuse_whsec: true,
        }),
    ],
    choice: Some(const { &learned_of(items![way("signature", &[0]), way("token", &[1])]) }),
    // Older servers send neither header.
    identity: items![id(header("webhook-id")), id(header("idempotency-key")), Identity::Digest,],
    event_type: items![
        kind_with(json("/object_kind"), json("/object_attributes/action")),
        kind(json("/event_name")),
        kind(header("x-gitlab-event")),
    ],
    object: items![json("/object_attributes/id"), json("/checkout_sha"), json("/project/id")],
    version: items![version(json("/object_attributes/updated_at"), Unit::Iso8601)],
    retry: "Never retries by itself; four failures in a row disable the webhook for a while.",
    recovery: "GET /projects/:id/hooks/:hook/events lists seven days, POST .../events/:event/resend \
         sends one again.",
    find_secret: "Settings, Webhooks, your webhook: Signing token, or else Secret token.",
    notes: "Prefer the signing token: the static one proves the sender, not the content.",
    sample_type: "push",
        sample_headers: items![
            (text("user-agent"), text("GitLab/sample")),
            (text("x-gitlab-event"), text("System Hook")),
        ],
        sample_body: r#"{"project":{"id":15,"path_with_namespace":"sample/project"}}"#,
        sample_object: "23",
    ..BLANK
}
.provider();
