//! Linear: HMAC-SHA256 over the body, hex, in `Linear-Signature`; the time is in the body.
//!
//! <https://linear.app/developers/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "linear",
    title: "Linear",
    docs: "https://linear.app/developers/webhooks",
    // The `Linear-Timestamp` header is not signed and not looked at.
    schemes: items![
        hmac(in_header("linear-signature"))
            .stamp(Place::Json(text("/webhookTimestamp")), MILLISECONDS, 60)
            .scheme()
    ],
    // `/webhookId` names the subscription, not the event.
    identity: items![id(header("linear-delivery")), Identity::Digest],
    event_type: items![
        kind_with(header("linear-event"), json("/action")),
        kind_with(json("/type"), json("/action")),
    ],
    object: items![json("/data/id")],
    version: items![
        version(json("/data/updatedAt"), Unit::Iso8601),
        version(json("/createdAt"), Unit::Iso8601),
    ],
    // Renewed for each attempt, else retries after an hour would be out of the window.
    volatile: items![text("/webhookTimestamp")],
    // Linear counts only 200 as success.
    answer: Some(Answer::Status(200)),
    retry: "Three retries: after a minute, an hour and six hours.",
    retry_hours: 8,
    find_secret: "Settings, API, Webhooks, your webhook, Signing secret (lin_wh_...).",
    notes: "Linear waits 5 s for an answer.",
    sample_type: "Issue.create",
        sample_headers: items![(text("user-agent"), text("Linear-Webhook"))],
        sample_body: r#"{"data":{"title":"A sample issue","number":7},
                "webhookId":"000042e3-d123-4980-b49f-8e140eef9329"}"#,
        sample_object: "2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9",
    ..BLANK
}
.provider();
