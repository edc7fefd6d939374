//! Wix: the whole body is a token, signed with RS256.
//!
//! <https://dev.wix.com/docs/rest/articles/getting-started/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "wix",
    title: "Wix",
    docs: "https://dev.wix.com/docs/rest/articles/getting-started/webhooks",
    schemes: items![Scheme::Jws(Jws {
        header: None,
        word: text(""),
        algorithms: list![JwsAlgorithm::Rs256],
        keys: JwsKeys::Secret,
        payload: JwsPayload::Claims(list![]),
    })],
    // The claim `data` is JSON in text, whose own `data` is JSON in text again.
    payload: Payload::Claims("/data"),
    identity: items![id(Field::Within(text("/data"), text("/id")))],
    event_type: items![kind(json("/eventType"))],
    object: items![Field::Within(text("/data"), text("/entityId"))],
    version: items![Version {
        field: Field::Within(text("/data"), text("/eventTime")),
        unit: Unit::Iso8601,
    }],
    answer: Some(Answer::Status(200)),
    retry: "Twelve retries with growing pauses over about 47 hours.",
    retry_hours: 48,
    find_secret: "Wix app dashboard, Develop, Webhooks: the public key.",
    notes: "What is kept is the token as it came; a consumer reads its claims. Wix waits 1.25 s.",
    sample_type: "wix.contacts.v4.contact_created",
    sample_body: r#"{"instanceId":"34763da4-8b23-4b14-9db3-7f9d8d5d8b3e"}"#,
    sample_object: "64e8d9d4-2f3a-4b2f-8f0a-6b1c2d3e4f50",
    ..BLANK
}
.provider();
