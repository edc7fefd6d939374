//! Upstash QStash: a token in `Upstash-Signature`, signed with HS256, for a URL and a body.
//!
//! <https://upstash.com/docs/qstash/howto/signature>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "qstash",
    title: "Upstash QStash",
    docs: "https://upstash.com/docs/qstash/howto/signature",
    schemes: items![
        jwt("upstash-signature", list![JwsAlgorithm::Hs256], JwsKeys::Secret)
            .claims(list![
                Claim::Is(text("iss"), text("Upstash")),
                Claim::IsUrl(text("sub")),
                Claim::BodyHash(text("body"), HashForm::Base64Url),
                Claim::Expires,
            ])
            .scheme()
    ],
    identity: items![id(header("upstash-message-id"))],
    event_type: items![kind(json("/type"))],
    retry: "Three times unless the message says otherwise, with growing pauses; then it goes to \
         the dead letter queue.",
    find_secret: "Upstash console, QStash, Signing keys: the current and the next one.",
    notes: "Give both signing keys, so that a rotation needs nothing. The body is whatever was \
         published; its JSON `type` becomes the type. The URL is signed: set `public_url` behind \
         a proxy.",
    sample_type: "sample",
    sample_body: r#"{"hello":"world"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
