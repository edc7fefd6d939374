//! Emailit: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `X-Emailit-Signature`.
//!
//! <https://emailit.com/docs/webhooks/request-signature/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "emailit",
    title: "Emailit",
    docs: "https://emailit.com/docs/webhooks/request-signature/",
    // The whole secret is the key: its `whsec_` is not a base64 marker here. Each retry is signed
    // anew.
    schemes: items![
        hmac(in_header("x-emailit-signature"))
            .stamp(in_header("x-emailit-timestamp"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    // An array of up to a hundred events; before, one object.
    batches: items![batch("")],
    identity: items![id(item("/event_id")), id(json("/event_id"))],
    event_type: items![kind(item("/type")), kind(json("/type"))],
    object: items![item("/data/object/id"), json("/data/object/id")],
    retry: "Retries after 5 s, 5 and 30 minutes, 2, 5, 10 and 24 hours; then the webhook is \
         disabled.",
    retry_hours: 42,
    recovery: "The API lists events, made for reconciling.",
    find_secret: "Dashboard, Webhooks, your webhook, Signing secret (whsec_...).",
    notes: "Emailit waits 30 s.",
    sample_type: "email.delivered",
    sample_body: r#"[{"data":{"object":{"object":"email","status":"delivered",
        "to":"ada@example.com"}}}]"#,
    sample_object: "em_2xGk7Lr3XcB8pQ1wYzK4dTfG9hJ",
    ..BLANK
}
.provider();
