//! Lithic: Standard Webhooks.
//!
//! <https://docs.lithic.com/docs/events-api>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "lithic",
    title: "Lithic",
    docs: "https://docs.lithic.com/docs/events-api",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/event_type")), kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "GET /v1/event_subscriptions/{token}/secret of the Lithic API.",
    sample_type: "card.created",
    sample_body: r#"{"data":{}}"#,
    sample_object: "card_sample",
    ..BLANK
}
.provider();
