//! CloudEvents: a bearer token, in `Authorization` or in the query.
//!
//! <https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cloudevents",
    title: "CloudEvents",
    docs: "https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md",
    schemes: items![
        token_at(TokenPlace::Header(text("authorization")), TokenKind::Bearer),
        token_at(TokenPlace::Query(text("access_token")), TokenKind::Plain)
    ],
    batches: items![batch("")],
    // An id is unique for one source. Headers hold them in binary mode, the body otherwise.
    identity: items![
        Identity::Joined(list![header("ce-id"), header("ce-source")]),
        Identity::Joined(list![item("/id"), item("/source")]),
        Identity::Joined(list![json("/id"), json("/source")])
    ],
    event_type: items![kind(header("ce-type")), kind(item("/type")), kind(json("/type"))],
    object: items![header("ce-subject"), item("/subject"), json("/subject")],
    version: items![
        version(header("ce-time"), Unit::Iso8601),
        version(item("/time"), Unit::Iso8601),
        version(json("/time"), Unit::Iso8601)
    ],
    // Only the headers of the answer count.
    handshakes: items![asks(OPTIONS, Wants::Has(header("webhook-request-origin"))).headers(list![
        (text("WebHook-Allowed-Origin"), Piece::Field(header("webhook-request-origin"))),
        (text("WebHook-Allowed-Rate"), Piece::Field(header("webhook-request-rate")))
    ])],
    types_share_body: Some(
        "In binary mode the type is a header and the body is the bare data.",
    ),
    retry: "As the sender pleases; 410 means stop, 429 must say when to come back.",
    find_secret: "Agree on one with the sender.",
    notes: "The token proves who sent a request, not what was sent. In binary mode the data must \
         be JSON.",
    sample_type: "com.example.someevent",
    sample_headers: items![
        (text("ce-specversion"), text("1.0")),
        (text("ce-source"), text("/sample"))
    ],
    sample_body: r#"{"message":"hello"}"#,
    sample_object: "123",
    ..BLANK
}
.provider();
