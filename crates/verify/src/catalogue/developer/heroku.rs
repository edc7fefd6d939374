//! Heroku: HMAC-SHA256 over the body, base64, in `Heroku-Webhook-Hmac-SHA256`.
//!
//! <https://devcenter.heroku.com/articles/app-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "heroku",
    title: "Heroku",
    docs: "https://devcenter.heroku.com/articles/app-webhooks",
    schemes: items![hmac(in_header("heroku-webhook-hmac-sha256")).base64().scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/webhook_metadata/event/include"))],
    object: items![json("/data/id")],
    version: items![version(json("/sequence"), Unit::Plain)],
    // Tells of the attempt.
    volatile: items![text("/webhook_metadata/attempt")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The secret that was given, or shown once, when the webhook was made.",
    sample_type: "api:release",
    sample_body: r#"{"action":"update","resource":"release","data":{"status":"succeeded"},
        "webhook_metadata":{"attempt":{"id":"sample"},"delivery":{"id":"sample"}}}"#,
    sample_object: "bf43f7a1-6d18-4bd5-ac1c-0e9b2c1f9a3e",
    ..BLANK
}
.provider();
