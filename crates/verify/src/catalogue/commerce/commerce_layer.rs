//! Commerce Layer: HMAC-SHA256 over the body, base64, in `X-CommerceLayer-Signature`.
//!
//! <https://docs.commercelayer.io/core/real-time-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "commerce-layer",
    title: "Commerce Layer",
    docs: "https://docs.commercelayer.io/core/real-time-webhooks",
    schemes: items![hmac(in_header("x-commercelayer-signature")).base64().scheme()],
    // One resource may come under several topics.
    identity: items![
        Identity::JoinedDigest(list![header("x-commercelayer-topic")]),
        Identity::Digest
    ],
    event_type: items![kind(header("x-commercelayer-topic"))],
    object: items![json("/data/id")],
    twins: hold("The same topic and body is a duplicate; only a copy without its topic is a twin."),
    types_share_body: Some(
        "The topic is a header and the body is the bare resource: one change may fire several \
         topics.",
    ),
    retry: "Not confirmed: ten times; 30 failures open the circuit.",
    find_secret: "The shared_secret of the webhook, in the dashboard or by API.",
    notes: "Commerce Layer waits 5 s. The topic is not signed.",
    sample_type: "orders.place",
    sample_body: r#"{"data":{"type":"orders","attributes":{"status":"placed"}}}"#,
    sample_object: "wBXVhKzrnq",
    ..BLANK
}
.provider();
