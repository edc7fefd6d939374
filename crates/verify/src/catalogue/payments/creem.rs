//! Creem: HMAC-SHA256 over the body, hex, in `creem-signature`; or Standard Webhooks.
//!
//! <https://docs.creem.io/code/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "creem",
    title: "Creem",
    docs: "https://docs.creem.io/code/webhooks",
    // The first takes the whole secret as text, the second what follows `whsec_`.
    schemes: items![
        hmac(in_header("creem-signature")).encoding(Encoding::HexAnyCase).scheme(),
        standard(&WEBHOOK, KeyForm::WhsecIfBase64)
    ],
    // Only Standard Webhooks signs a time.
    choice: Some(const { &learned_of(items![way("standard", &[1]), way("creem", &[0])]) }),
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/eventType"))],
    object: items![json("/object/id")],
    version: items![version(json("/created_at"), Unit::Milliseconds)],
    retry: "Not documented; expect retries.",
    find_secret: "Dashboard, Developers, Webhooks, your endpoint, Secret.",
    sample_type: "checkout.completed",
    sample_body: r#"{"object":{"object":"checkout","status":"completed"}}"#,
    sample_object: "ch_sample",
    ..BLANK
}
.provider();
