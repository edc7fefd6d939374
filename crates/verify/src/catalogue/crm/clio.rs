//! Clio: HMAC-SHA256 over the body, hex, in `X-Hook-Signature`.
//!
//! <https://docs.developers.clio.com/api-docs/clio-manage/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "clio",
    title: "Clio",
    docs: "https://docs.developers.clio.com/api-docs/clio-manage/webhooks/",
    schemes: items![hmac(in_header("x-hook-signature")).scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/meta/event"))],
    // Told while the call that creates the webhook is open.
    pairing: Some(
        const { &Pairing { secret: header("x-hook-secret"), echo: Some(text("X-Hook-Secret")) } },
    ),
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The X-Hook-Secret that Clio sends when the webhook is made.",
    notes: "Open a pairing window before the webhook is made: Clio then sends its secret, which \
         is kept. Webhooks expire after at most 31 days.",
    sample_type: "updated",
    sample_body: r#"{"data":{"id":42,"etag":"sample"},"meta":{"webhook_id":7}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
