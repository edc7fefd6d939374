//! The generic providers, `hmac` and `token`, with their default settings.
//!
//! [`custom`](crate::custom) makes providers of the same shape from other settings.

use super::words::*;

const GENERIC: Entry = Entry {
    docs: "https://github.com/oncebox/oncebox/blob/main/docs/providers.md",
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    retry: "As the sender pleases.",
    find_secret: "Agree on one with the sender.",
    sample_type: "sample.created",
    sample_body: r#"{"data":{"message":"hello"}}"#,
    ..BLANK
};

pub(crate) static HMAC: Provider = Entry {
    name: "hmac",
    title: "Any HMAC",
    schemes: items![hmac(in_header("X-Webhook-Signature")).encoding(Encoding::HexAnyCase).scheme()],
    notes: "Header, template, algorithm and encoding are settings of the source.",
    ..GENERIC
}
.provider();

pub(crate) static TOKEN: Provider = Entry {
    name: "token",
    title: "Any token",
    schemes: items![token("X-Webhook-Token")],
    notes: "A token proves who sent a request, not what was sent. Use it over TLS only, and only \
            where the sender cannot sign.",
    ..GENERIC
}
.provider();
