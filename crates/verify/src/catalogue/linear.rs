//! Linear: HMAC-SHA256 over the body, hex, in `Linear-Signature`; the time is in the body.
//!
//! <https://linear.app/developers/webhooks>

use super::{header, id, json, kind_with, text, version};
use crate::provider::{
    Algorithm, Answer, Encoding, Guard, Hmac, Identity, KeyEncoding, Part, Place, Provider, Sample,
    Scheme, Stamp, TimeFormat, Unit,
};

pub(super) static LINEAR: Provider = Provider {
    name: text("linear"),
    title: text("Linear"),
    docs: text("https://linear.app/developers/webhooks"),
    schemes: list![Scheme::Hmac(Hmac {
        algorithm: Algorithm::Sha256,
        signature: Place::Header(text("linear-signature")),
        prefix: text(""),
        separator: None,
        encoding: Encoding::Hex,
        // The `Linear-Timestamp` header is not signed and not looked at.
        timestamp: Some(Stamp {
            place: Place::Json(text("/webhookTimestamp")),
            format: TimeFormat::Milliseconds,
            tolerance_secs: 60,
        }),
        signed: list![Part::Body],
        key: KeyEncoding::Text,
    })],
    // `/webhookId` names the subscription, not the event.
    identity: list![id(header("linear-delivery")), Identity::Digest],
    event_type: list![
        kind_with(header("linear-event"), json("/action")),
        kind_with(json("/type"), json("/action")),
    ],
    object: list![json("/data/id")],
    version: list![
        version(json("/data/updatedAt"), Unit::Iso8601),
        version(json("/createdAt"), Unit::Iso8601),
    ],
    // Renewed for each attempt, else retries after an hour would be out of the window.
    volatile: list![text("/webhookTimestamp")],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    // Linear counts only 200 as success.
    answer: Some(Answer::Status(200)),
    retry: text("Three retries: after a minute, an hour and six hours."),
    find_secret: text("Settings, API, Webhooks, your webhook, Signing secret (lin_wh_...)."),
    notes: text("Linear waits 5 s for an answer."),
    sample_type: text("Issue.create"),
    sample: Sample {
        headers: list![(text("user-agent"), text("Linear-Webhook"))],
        body: text(
            r#"{"data":{"title":"A sample issue","number":7},
                "webhookId":"000042e3-d123-4980-b49f-8e140eef9329"}"#,
        ),
        object: text("2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9"),
        form: false,
    },
};
