//! Cloudprinter CloudSignal: a static key in the body, at `/apikey`.
//!
//! <https://docs.cloudprinter.com/client/cloudsignal>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cloudsignal",
    title: "Cloudprinter CloudSignal",
    docs: "https://docs.cloudprinter.com/client/cloudsignal",
    experimental: true,
    schemes: items![token_at(TokenPlace::Json(text("/apikey")), TokenKind::Plain)],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/order")],
    answer: Some(Answer::Status(200)),
    retry: "Not confirmed: 100 tries over seven days.",
    retry_hours: 168,
    find_secret: "Dashboard, your CloudSignal interface: its API key.",
    notes: "The body is not signed and holds the key: whoever may read stored bodies may read \
         it. The scheme was read in one catalogue only.",
    sample_type: "ItemShipped",
    sample_body: r#"{"item":"sample","order_reference":"1001"}"#,
    sample_object: "123456789",
    ..BLANK
}
.provider();
