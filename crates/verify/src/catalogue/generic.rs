//! The generic providers, `hmac` and `token`, with their default settings.
//!
//! [`custom`](crate::custom) makes providers of the same shape from other settings.

use super::{id, json, kind, text};
use crate::provider::{
    Algorithm, Encoding, Guard, Hmac, KeyEncoding, Part, Place, Provider, Sample, Scheme, Token,
    TokenKind,
};

const RETRY: &str = "As the sender pleases.";
const DOCS: &str = "https://github.com/oncebox/oncebox/blob/main/docs/providers.md";

pub(crate) static HMAC: Provider = Provider {
    name: text("hmac"),
    title: text("Any HMAC"),
    docs: text(DOCS),
    schemes: list![Scheme::Hmac(Hmac {
        algorithm: Algorithm::Sha256,
        signature: Place::Header(text("X-Webhook-Signature")),
        prefix: text(""),
        separator: None,
        encoding: Encoding::HexAnyCase,
        timestamp: None,
        signed: list![Part::Body],
        key: KeyEncoding::Text,
    })],
    identity: list![id(json("/id"))],
    event_type: list![kind(json("/type"))],
    object: list![],
    version: list![],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text(RETRY),
    find_secret: text("Agree on one with the sender."),
    notes: text("Header, template, algorithm and encoding are settings of the source."),
    sample_type: text("sample.created"),
    sample: GENERIC_SAMPLE,
};

pub(crate) static TOKEN: Provider = Provider {
    name: text("token"),
    title: text("Any token"),
    docs: text(DOCS),
    schemes: list![Scheme::Token(Token {
        header: text("X-Webhook-Token"),
        kind: TokenKind::Plain,
        refuse_whsec: false,
    })],
    identity: list![id(json("/id"))],
    event_type: list![kind(json("/type"))],
    object: list![],
    version: list![],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text(RETRY),
    find_secret: text("Agree on one with the sender."),
    notes: text(
        "A token proves who sent a request, not what was sent. Use it over TLS only, and only \
         where the sender cannot sign.",
    ),
    sample_type: text("sample.created"),
    sample: GENERIC_SAMPLE,
};

const GENERIC_SAMPLE: Sample = Sample {
    headers: list![],
    body: text(r#"{"data":{"message":"hello"}}"#),
    object: text("object_sample"),
    form: false,
};
