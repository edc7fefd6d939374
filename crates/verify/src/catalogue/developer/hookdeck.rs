//! Hookdeck: HMAC-SHA256 over the body, base64, in `x-hookdeck-signature`.
//!
//! <https://hookdeck.com/docs/authentication>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "hookdeck",
    title: "Hookdeck",
    docs: "https://hookdeck.com/docs/authentication",
    // The second header is sent while a secret is rolled.
    schemes: items![
        hmac(Place::AnyOf(list![text("x-hookdeck-signature"), text("x-hookdeck-signature-2")]))
            .base64()
            .scheme()
    ],
    // What others sent may be anything.
    payload: Payload::Any,
    identity: items![id(header("x-hookdeck-eventid"))],
    event_type: items![kind(json("/type"))],
    twins: deliver(
        "The body is that of any other sender, which may say the same twice.",
    ),
    retry: "As the connection at Hookdeck is set.",
    find_secret: "Settings, Project, Secrets, Signing secret.",
    notes: "Hookdeck passes on what others sent, with their signatures beside its own; only its \
         own is looked at.",
    sample_type: "sample.created",
    sample_body: r#"{"data":{"message":"hello"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
