//! Synctera: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `Synctera-Signature`.
//!
//! <https://dev.synctera.com/docs/webhooks-guide>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "synctera",
    title: "Synctera",
    docs: "https://dev.synctera.com/docs/webhooks-guide",
    // Two signatures joined by a dot while a secret is rotated.
    schemes: items![
        hmac(in_header("synctera-signature"))
            .separated('.')
            .stamp(in_header("request-timestamp"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "Not confirmed: for 55 hours.",
    retry_hours: 55,
    find_secret: "POST /v0/webhook_secrets of the Synctera API.",
    notes: "Synctera waits 5 s.",
    sample_type: "ACCOUNT.CREATED",
    sample_body: r#"{"event_resource":"{}"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
