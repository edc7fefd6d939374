//! MCP Events: Standard Webhooks from a server of the Model Context Protocol, whose secret the
//! subscriber chooses.
//!
//! <https://github.com/modelcontextprotocol/experimental-ext-triggers-events>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mcp-events",
    title: "MCP Events",
    docs: "https://github.com/modelcontextprotocol/experimental-ext-triggers-events",
    experimental: true,
    schemes: items![standard(&WEBHOOK, KeyForm::Whsec), standard_v1a(&WEBHOOK)],
    // That of an event is its `eventId`; a control message has one of its own.
    identity: WEBHOOK_ID,
    // What has a type is a control message: `gap` or `terminated`.
    event_type: items![kind(json("/name")), kind(json("/type"))],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    // Where the subscription is, which a retry tells anew.
    volatile: items![text("/cursor")],
    // Asked before the first event, and signed like one.
    handshakes: items![
        asks(POST, Wants::Is(json("/type"), text("verification")))
            .signed()
            .challenge(json("/challenge"))
            .says(Said::Json(list![(text("challenge"), list![Piece::Challenge])]))
    ],
    retry: "As the server pleases; every try is signed anew. 410 ends the subscription, 413 is not \
         tried again.",
    find_secret: "Choose one, whsec_ and the base64 of 24 to 64 random bytes, and give it to the \
         server as `delivery.secret` of events/subscribe.",
    notes: "A subscription is made and renewed by an MCP client, not by Oncebox; several of one \
         server may share the source and its secret. `X-MCP-Subscription-Id` is not signed. Bodies \
         have at most 256 KiB. The specification is a draft.",
    sample_type: "incident.created",
    sample_headers: items![(text("x-mcp-subscription-id"), text("sub_a3f1c8e2b0d49f7e"))],
    sample_body: r#"{"eventId":"sample","data":{"message":"hello"},"cursor":null}"#,
    sample_object: "",
    ..BLANK
}
.provider();
