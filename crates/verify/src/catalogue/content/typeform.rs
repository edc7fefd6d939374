//! Typeform: HMAC-SHA256 over the body, base64 after `sha256=`, in `Typeform-Signature`.
//!
//! <https://www.typeform.com/developers/webhooks/secure-your-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "typeform",
    title: "Typeform",
    docs: "https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
    schemes: items![hmac(in_header("typeform-signature")).base64().prefix("sha256=").scheme()],
    identity: items![id(json("/event_id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/form_response/token")],
    version: items![version(json("/form_response/submitted_at"), Unit::Iso8601)],
    retry: "After 408, 423, 429 and 503 every few minutes for ten hours, else about five tries; \
         404 and 410 disable the webhook.",
    retry_hours: 10,
    find_secret: "Your form, Connect, Webhooks, your webhook, Secret: the one you chose there.",
    notes: "A webhook without a secret is sent without a signature and refused here. Typeform \
         waits 30 s.",
    sample_type: "form_response",
    sample_body: r#"{"form_response":{"form_id":"lT4Z3j","landed_at":"2026-01-02T03:04:05Z",
        "answers":[{"type":"email","email":"alice@example.com","field":{"id":"SMEUb7VJz92Q",
        "type":"email","ref":"email"}}]}}"#,
    sample_object: "a3a12ec67a1365927098a606107fac15",
    ..BLANK
}
.provider();
