//! Supabase Auth hooks: Standard Webhooks with a new id for every attempt.
//!
//! <https://supabase.com/docs/guides/auth/auth-hooks>

use super::family::BY_WEBHOOK;
use super::{json, list, text, version};
use crate::provider::{Answer, Guard, Identity, Provider, Sample, TypeRule, Unit};

pub(super) static SUPABASE_AUTH_HOOKS: Provider = Provider {
    name: text("supabase-auth-hooks"),
    title: text("Supabase Auth hooks"),
    docs: text("https://supabase.com/docs/guides/auth/auth-hooks"),
    // The secret is written `v1,whsec_...`, and several signatures are joined by a
    // comma and a space; both are understood.
    schemes: list(BY_WEBHOOK),
    // `webhook-id` is new on every attempt, the body is not.
    identity: list![Identity::Digest],
    event_type: list![TypeRule {
        text: text("send_email."),
        first: json("/email_data/email_action_type"),
        then: None,
    }],
    object: list![json("/user/id")],
    version: list![version(json("/user/updated_at"), Unit::Iso8601)],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    // The hook is synchronous and reads the answer: an empty object changes nothing.
    answer: Some(Answer::Exactly { status: 200, content_type: "application/json", body: "{}" }),
    retry: text("Three tries, two seconds apart, within five seconds in all."),
    find_secret: text("Authentication, Hooks, your hook, Secret (v1,whsec_...)."),
    notes: text("Two hooks with the same body, byte for byte, count as one event."),
    sample_type: text("send_email.signup"),
    sample: Sample {
        headers: list![],
        body: text(r#"{"user":{"email":"alice@example.com"},"email_data":{"token":"305805"}}"#),
        object: text("8484b834-f29e-4af2-bf42-80644d154f76"),
        form: false,
    },
};
