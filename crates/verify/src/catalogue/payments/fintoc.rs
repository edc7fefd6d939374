//! Fintoc: HMAC-SHA256 over `{t}.{body}`, hex, in `Fintoc-Signature`.
//!
//! <https://docs.fintoc.com/docs/webhooks-walkthrough>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "fintoc",
    title: "Fintoc",
    docs: "https://docs.fintoc.com/docs/webhooks-walkthrough",
    schemes: items![
        hmac(label("fintoc-signature", ",", "v1"))
            .stamp(label("fintoc-signature", ",", "t"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Not documented; expect retries.",
    recovery: "GET /v1/events with since and until lists events with the payload of the webhook.",
    find_secret: "Dashboard, Developers, Webhooks, your endpoint, Secret.",
    sample_type: "payment_intent.succeeded",
    sample_body: r#"{"object":"event","mode":"test","data":{"object":"payment_intent",
        "status":"succeeded"}}"#,
    sample_object: "pi_sample",
    ..BLANK
}
.provider();
