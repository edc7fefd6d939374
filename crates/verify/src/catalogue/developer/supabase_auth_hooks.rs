//! Supabase Auth hooks: Standard Webhooks with a new id for every attempt.
//!
//! <https://supabase.com/docs/guides/auth/auth-hooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "supabase-auth-hooks",
    title: "Supabase Auth hooks",
    docs: "https://supabase.com/docs/guides/auth/auth-hooks",
    // The secret is written `v1,whsec_...`, and several signatures are joined by a
    // comma and a space; both are understood.
    schemes: BY_WEBHOOK,
    // `webhook-id` is new on every attempt, the body is not.
    identity: items![Identity::Digest],
    event_type: items![TypeRule {
        text: text("send_email."),
        first: json("/email_data/email_action_type"),
        then: None,
    }],
    object: items![json("/user/id")],
    version: items![version(json("/user/updated_at"), Unit::Iso8601)],
    // The hook is synchronous and reads the answer: an empty object changes nothing.
    answer: Some(Answer::Exactly { status: 200, content_type: "application/json", body: "{}" }),
    retry: "Three tries, two seconds apart, within five seconds in all.",
    retry_hours: 1,
    find_secret: "Authentication, Hooks, your hook, Secret (v1,whsec_...).",
    notes: "Two hooks with the same body, byte for byte, count as one event.",
    sample_type: "send_email.signup",
        sample_body: r#"{"user":{"email":"alice@example.com"},"email_data":{"token":"305805"}}"#,
        sample_object: "8484b834-f29e-4af2-bf42-80644d154f76",
    ..BLANK
}
.provider();
