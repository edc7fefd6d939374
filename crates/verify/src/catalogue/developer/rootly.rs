//! Rootly: HMAC-SHA256 over `{timestamp}{body}`, hex, in `X-Rootly-Signature`.
//!
//! <https://docs.rootly.com/configuration/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "rootly",
    title: "Rootly",
    docs: "https://docs.rootly.com/configuration/webhooks",
    schemes: items![
        hmac(label("x-rootly-signature", ",", "v1"))
            .stamp(label("x-rootly-signature", ",", "t"), SECONDS, 300)
            .over(list![TIME, BODY])
            .scheme()
    ],
    identity: items![id(json("/event/id"))],
    event_type: items![kind(json("/event/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/event/issued_at"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Configuration, Webhooks, your endpoint, Secret.",
    sample_type: "incident.created",
    sample_body: r#"{"event":{},"data":{"title":"A sample","status":"started"}}"#,
    sample_object: "c7b9b6a8-1b5e-4a53-9d0e-8a6a4e1c7d0f",
    ..BLANK
}
.provider();
