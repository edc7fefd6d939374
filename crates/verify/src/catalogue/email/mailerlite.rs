//! MailerLite: HMAC-SHA256 over the body, hex, in `Signature`.
//!
//! <https://developers.mailerlite.com/docs/webhooks.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mailerlite",
    title: "MailerLite",
    docs: "https://developers.mailerlite.com/docs/webhooks.html",
    schemes: items![hmac(in_header("signature")).scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "Not documented; expect retries.",
    find_secret: "Integrations, Webhooks, your webhook, Secret.",
    sample_type: "subscriber.created",
    sample_body: r#"{"subscriber":{"email":"alice@example.com"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
