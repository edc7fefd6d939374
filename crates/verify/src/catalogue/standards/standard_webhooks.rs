//! Standard Webhooks: `v1,` and base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`,
//! or `v1a,` and base64 of an Ed25519 signature over the same.
//!
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "standard-webhooks",
    title: "Standard Webhooks",
    docs: "https://www.standardwebhooks.com/",
    // The secret says which: `whsec_` is a shared one, `whpk_` a public key.
    schemes: items![standard(&WEBHOOK, KeyForm::Whsec), standard_v1a(&WEBHOOK)],
    identity: items![id(header("webhook-id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    retry: "As the sender pleases; the specification suggests ten tries over three days.",
    retry_hours: 72,
    find_secret: "Where the sender shows it; it starts with whsec_, a public key with whpk_.",
    sample_type: "contact.created",
        sample_body: r#"{"data":{"email":"alice@example.com"}}"#,
        sample_object: "1f81eb52-5198-4599-803e-771906343485",
    ..BLANK
}
.provider();
