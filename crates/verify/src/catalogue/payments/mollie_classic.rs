//! Mollie (classic): no signature; a token of ours in the URL.
//!
//! <https://docs.mollie.com/reference/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mollie-classic",
    title: "Mollie (classic)",
    docs: "https://docs.mollie.com/reference/webhooks",
    schemes: items![token_at(TokenPlace::Query(text("token")), TokenKind::Plain)],
    // Every change of a payment is told with the same few bytes, `id=tr_...`, so nothing tells a
    // retry from the next change.
    identity: items![Identity::Each],
    object: items![form("id")],
    answer: Some(Answer::Status(200)),
    retry: "About ten tries over 26 hours.",
    retry_hours: 26,
    find_secret: "Choose a long random text and add it to the webhook URL you give to Mollie: \
         ?token=....",
    notes: "Nothing is signed and nothing told but an id: fetch the object from Mollie before \
         acting. A retry is an event of its own.",
    sample_type: "unknown",
    sample_body: "",
    sample_object: "tr_d0b0E3EA3v",
    sample_form: true,
    ..BLANK
}
.provider();
