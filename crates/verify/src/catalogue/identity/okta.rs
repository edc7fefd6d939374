//! Okta: a static value in `Authorization`; the endpoint is verified once by an echo.
//!
//! <https://developer.okta.com/docs/concepts/event-hooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "okta",
    title: "Okta",
    docs: "https://developer.okta.com/docs/concepts/event-hooks/",
    schemes: items![token("authorization")],
    batches: items![batch("/data/events")],
    identity: items![id(item("/uuid"))],
    event_type: items![kind(item("/eventType"))],
    object: items![item("/target/0/id")],
    version: items![version(item("/published"), Unit::Iso8601)],
    handshakes: items![
        asks(GET, Wants::Has(header("x-okta-verification-challenge")))
            .challenge(header("x-okta-verification-challenge"))
            .says(Said::Json(list![(text("verification"), list![Piece::Challenge])]))
    ],
    answer: Some(Answer::Status(200)),
    retry: "One retry after a time-out or an error, none after a 4xx.",
    find_secret: "Workflow, Event Hooks, your hook, Authentication secret, with \
         `Authorization` as its field.",
    notes: "The body is not signed. Okta waits 3 s. Another field than `Authorization` is not \
         read.",
    sample_type: "user.lifecycle.create",
    sample_body: r#"{"eventTypeVersion":"2.0","cloudEventsVersion":"0.1",
        "source":"https://example.okta.com/api/v1/eventHooks/who1",
        "data":{"events":[{"severity":"INFO","target":[{"type":"User"}]}]}}"#,
    sample_object: "00u1sample",
    ..BLANK
}
.provider();
