//! Telnyx: Ed25519 over the time and the body, base64, in `telnyx-signature-ed25519`.
//!
//! <https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "telnyx",
    title: "Telnyx",
    docs: "https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks",
    schemes: items![
        signed_by(Algorithm::Ed25519, in_header("telnyx-signature-ed25519"))
            .stamp(in_header("telnyx-timestamp"), SECONDS, 300)
            .over(list![TIME, lit("|"), BODY])
            .scheme()
    ],
    identity: items![id(json("/data/id"))],
    event_type: items![kind(json("/data/event_type"))],
    object: items![json("/data/payload/id")],
    version: items![version(json("/data/occurred_at"), Unit::Iso8601)],
    volatile: items![text("/meta/attempt")],
    retry: "A few times with growing pauses, then to the failover URL.",
    find_secret: "Mission Control Portal, Keys and Credentials, Public key.",
    sample_type: "message.received",
    sample_body: r#"{"data":{"record_type":"event","payload":{"direction":"inbound",
        "from":{"phone_number":"+13125550001"},"text":"Hello"}},"meta":{"attempt":1}}"#,
    sample_object: "84cca175-9755-4859-b67f-4730d7f58aa3",
    ..BLANK
}
.provider();
