//! Standard Webhooks: `v1,` and base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`,
//! or `v1a,` and base64 of an Ed25519 signature over the same.
//!
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use super::{WEBHOOK, header, id, json, kind, standard, standard_v1a, text, version};
use crate::provider::{Guard, KeyEncoding, Provider, Sample, Unit};

pub(super) static STANDARD_WEBHOOKS: Provider = Provider {
    name: text("standard-webhooks"),
    title: text("Standard Webhooks"),
    docs: text("https://www.standardwebhooks.com/"),
    // The secret says which: `whsec_` is a shared one, `whpk_` a public key.
    schemes: list![standard(&WEBHOOK, KeyEncoding::Whsec), standard_v1a(&WEBHOOK)],
    identity: list![id(header("webhook-id"))],
    event_type: list![kind(json("/type"))],
    object: list![json("/data/id")],
    version: list![version(json("/timestamp"), Unit::Iso8601)],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text("As the sender pleases; the specification suggests ten tries over three days."),
    find_secret: text("Where the sender shows it; it starts with whsec_, a public key with whpk_."),
    notes: text(""),
    sample_type: text("contact.created"),
    sample: Sample {
        headers: list![],
        body: text(r#"{"data":{"email":"alice@example.com"}}"#),
        object: text("1f81eb52-5198-4599-803e-771906343485"),
        form: false,
    },
};
