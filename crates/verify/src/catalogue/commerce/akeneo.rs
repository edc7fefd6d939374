//! Akeneo: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `x-akeneo-request-signature`.
//!
//! <https://api.akeneo.com/events-documentation/security.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "akeneo",
    title: "Akeneo",
    docs: "https://api.akeneo.com/events-documentation/security.html",
    schemes: items![
        hmac(in_header("x-akeneo-request-signature"))
            .stamp(in_header("x-akeneo-request-timestamp"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    batches: items![batch("/events")],
    identity: items![id(item("/event_id"))],
    event_type: items![kind(item("/action"))],
    version: items![version(item("/event_datetime"), Unit::Iso8601)],
    retry: "Not documented; expect none.",
    recovery: "While a subscription is suspended its events are kept for ten days.",
    find_secret: "Connect, Connection settings, your connection, Event subscription, Secret.",
    notes: "Akeneo asks for an answer within half a second.",
    sample_type: "product.updated",
    sample_body: r#"{"events":[{"author":"julia","author_type":"ui",
        "data":{"resource":{"identifier":"blue_jeans"}}}]}"#,
    sample_object: "",
    ..BLANK
}
.provider();
