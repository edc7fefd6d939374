//! Discord: Ed25519 over the time and the body, hex, in `X-Signature-Ed25519`.
//!
//! <https://discord.com/developers/docs/events/webhook-events>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "discord",
    title: "Discord",
    docs: "https://discord.com/developers/docs/events/webhook-events",
    // The official library checks no age, and nobody says whether retries are signed anew.
    schemes: items![
        signed_by(Algorithm::Ed25519, in_header("x-signature-ed25519"))
            .encoding(Encoding::HexAnyCase)
            .undated(in_header("x-signature-timestamp"), SECONDS)
            .over(list![TIME, BODY])
            .scheme()
    ],
    // Interactions have an id; events of an application have none.
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![
        kind(json("/event/type")),
        TypeRule {
            text: text("interaction."),
            first: json("/type"),
            then: Some(json("/data/name")),
        },
    ],
    version: items![version(json("/event/timestamp"), Unit::Iso8601)],
    handshakes: items![
        asks(POST, Wants::Is(json("/type"), text("0"))).signed().status(204),
        asks(POST, Wants::IsWithout(json("/type"), text("1"), json("/event")))
            .signed()
            .says(Said::Exactly(text(r#"{"type":1}"#))),
    ],
    answer: Some(Answer::Silent(204)),
    retry: "At growing intervals for about ten minutes; after many failures Discord unsubscribes \
         you, by mail.",
    retry_hours: 1,
    find_secret: "Developer Portal, your application, General Information: the public key.",
    notes: "Discord sends wrong signatures on purpose and wants 401 for them. An interaction that \
         should be answered in its own words needs an application that answers it itself.",
    sample_type: "APPLICATION_AUTHORIZED",
    sample_body: r#"{"version":1,"application_id":"1234560123453231555","type":1,
        "event":{"data":{"integration_type":1,"scopes":["applications.commands"]}}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
