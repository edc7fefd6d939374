//! ClickUp: HMAC-SHA256 over the body, hex, in `X-Signature`.
//!
//! <https://developer.clickup.com/docs/webhooksignature>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "clickup",
    title: "ClickUp",
    docs: "https://developer.clickup.com/docs/webhooksignature",
    schemes: items![hmac(in_header("x-signature")).scheme()],
    // Events without a history may read the same.
    identity: items![
        Identity::Joined(list![json("/event"), json("/history_items/0/id")]),
        Identity::Each
    ],
    event_type: items![kind(json("/event"))],
    object: items![json("/task_id")],
    retry: "Not documented; a webhook that fails is marked so and suspended.",
    find_secret: "webhook.secret in the answer to the call that created the webhook.",
    notes: "A retry of an event without a history, such as that of a goal, is an event of its own.",
    sample_type: "taskUpdated",
    sample_body: r#"{"webhook_id":"7fa3ec74-69a8-4530-a251-8a13730bd204",
        "history_items":[{"id":"2800763136717140857","field":"status"}]}"#,
    sample_object: "1vj37mc",
    ..BLANK
}
.provider();
