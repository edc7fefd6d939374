//! Intercom: HMAC-SHA1 over the body, hex after `sha1=`, in `X-Hub-Signature`.
//!
//! <https://developers.intercom.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "intercom",
    title: "Intercom",
    docs: "https://developers.intercom.com/docs/webhooks",
    schemes: items![hmac(in_header("x-hub-signature")).sha1().prefix("sha1=").scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/topic"))],
    object: items![json("/data/item/id")],
    version: items![
        version(json("/data/item/updated_at"), Unit::Seconds),
        version(json("/created_at"), Unit::Seconds)
    ],
    // Tell of the attempts.
    volatile: items![text("/delivery_attempts"), text("/delivery_status"), text("/delivered_at")],
    // The test has no id.
    handshakes: items![
        asks(HEAD, Wants::Method),
        asks(POST, Wants::Is(json("/topic"), text("ping"))).signed(),
    ],
    retry: "At least one retry after about a minute; 1,000 errors in 15 minutes pause the webhook.",
    retry_hours: 1,
    find_secret: "Developer hub, your app, Basic information, Client secret.",
    notes: "Intercom asks with HEAD when the URL is saved, and waits 5 s for an answer.",
    sample_type: "conversation.user.created",
    sample_body: r#"{"type":"notification_event","app_id":"a86dr8yl","delivery_attempts":1,
        "delivery_status":"pending","delivered_at":0,
        "data":{"type":"notification_event_data","item":{"type":"conversation",
        "state":"open","source":{"type":"conversation","body":"<p>Hello</p>"}}}}"#,
    sample_object: "1911149811",
    ..BLANK
}
.provider();
