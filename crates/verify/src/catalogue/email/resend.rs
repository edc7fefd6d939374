//! Resend: Standard Webhooks, delivered by Svix.
//!
//! <https://resend.com/docs/dashboard/webhooks/introduction>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "resend",
    title: "Resend",
    docs: "https://resend.com/docs/dashboard/webhooks/introduction",
    schemes: BY_SVIX,
    identity: SVIX_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/email_id"), json("/data/id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    retry: "On the schedule of Svix: eight tries over about a day.",
    retry_hours: 28,
    recovery: "GET /webhooks/{id}/events lists id, type, time and status; payload and attempts of \
         an event are calls of their own, and each event can be replayed.",
    find_secret: "Dashboard, Webhooks, your webhook, Signing Secret (whsec_...).",
    sample_type: "email.delivered",
    sample_body: r#"{"data":{"from":"Acme <onboarding@resend.dev>",
        "to":["delivered@resend.dev"],"subject":"hello"}}"#,
    sample_object: "56761188-7520-42d8-8898-ff6fc54ce618",
    ..BLANK
}
.provider();
