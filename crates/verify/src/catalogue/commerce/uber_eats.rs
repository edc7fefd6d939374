//! Uber Eats: HMAC-SHA256 over the body, hex, in `X-Uber-Signature`.
//!
//! <https://developer.uber.com/docs/eats/guides/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "uber-eats",
    title: "Uber Eats",
    docs: "https://developer.uber.com/docs/eats/guides/webhooks",
    schemes: items![hmac(in_header("x-uber-signature")).scheme()],
    identity: items![id(json("/event_id")), Identity::Digest],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/meta/resource_id")],
    version: items![version(json("/event_time"), Unit::Seconds)],
    // Uber asks for 200 and an empty body.
    answer: Some(Answer::Silent(200)),
    retry: "Not confirmed: after 10, 30, 60 and 120 s and so on, about seven times.",
    retry_hours: 1,
    find_secret: "Developer Dashboard, your app: the client secret.",
    sample_type: "orders.notification",
    sample_body: r#"{"meta":{"user_id":"89dd9741-66b5-4bb4-b216-a813f3b21b4f","status":"pos"},
        "resource_href":"https://api.uber.com/v2/eats/order/sample"}"#,
    sample_object: "153dd7f1-339d-4619-940c-418943c14636",
    ..BLANK
}
.provider();
