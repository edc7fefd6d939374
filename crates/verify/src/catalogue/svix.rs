//! Svix: Standard Webhooks under `svix-*` header names.
//!
//! <https://docs.svix.com/receiving/verifying-payloads/how-manual>

use super::{SVIX_NAMES, WEBHOOK, header, id, json, kind, standard, standard_v1a, text, version};
use crate::provider::{Guard, KeyEncoding, Provider, Sample, Unit};

pub(super) static SVIX: Provider = Provider {
    name: text("svix"),
    title: text("Svix"),
    docs: text("https://docs.svix.com/receiving/verifying-payloads/how-manual"),
    // Where both sets are sent, Svix's own libraries prefer theirs; so do we.
    schemes: list![
        standard(&SVIX_NAMES, KeyEncoding::Whsec),
        standard_v1a(&SVIX_NAMES),
        standard(&WEBHOOK, KeyEncoding::Whsec),
        standard_v1a(&WEBHOOK),
    ],
    identity: list![id(header("svix-id")), id(header("webhook-id"))],
    event_type: list![kind(json("/type"))],
    object: list![json("/data/id")],
    version: list![version(json("/timestamp"), Unit::Iso8601)],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text("Eight tries over about a day."),
    find_secret: text(
        "The app portal of the sender, your endpoint, Signing Secret (whsec_... or whpk_...).",
    ),
    notes: text(""),
    sample_type: text("contact.created"),
    sample: Sample {
        headers: list![(text("user-agent"), text("Svix-Webhooks/sample"))],
        body: text(r#"{"data":{"email":"alice@example.com"}}"#),
        object: text("1f81eb52-5198-4599-803e-771906343485"),
        form: false,
    },
};
