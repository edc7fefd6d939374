//! Mautic: HMAC-SHA256 over the body, base64, in `Webhook-Signature`.
//!
//! <https://devdocs.mautic.org/en/latest/webhooks/getting_started.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mautic",
    title: "Mautic",
    docs: "https://devdocs.mautic.org/en/latest/webhooks/getting_started.html",
    schemes: items![hmac(in_header("webhook-signature")).base64().scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(Field::KeyBeside(list![]))],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Webhooks, your webhook, Secret.",
    notes: "Mautic may queue events and send several of one type in one request, which is one \
         event here. Other providers use the same header in other ways.",
    sample_type: "mautic.lead_post_save_update",
    sample_body: r#"{"mautic.lead_post_save_update":[{"contact":{"id":42}}]}"#,
    sample_object: "",
    ..BLANK
}
.provider();
