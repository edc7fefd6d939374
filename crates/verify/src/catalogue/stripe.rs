//! Stripe: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `Stripe-Signature`.
//!
//! <https://docs.stripe.com/webhooks/signature>

use super::{id, json, kind, text, version};
use crate::provider::{
    Algorithm, Encoding, Guard, Hmac, KeyEncoding, Part, Place, Provider, Sample, Scheme, Stamp,
    TimeFormat, Unit,
};

pub(super) static STRIPE: Provider = Provider {
    name: text("stripe"),
    title: text("Stripe"),
    docs: text("https://docs.stripe.com/webhooks/signature"),
    schemes: list![Scheme::Hmac(Hmac {
        algorithm: Algorithm::Sha256,
        // During a secret roll Stripe sends several `v1` values; any may match.
        signature: label("v1"),
        prefix: text(""),
        separator: None,
        encoding: Encoding::Hex,
        // The SDKs check only the age. We refuse the future too: a captured request
        // must not stay valid because a clock was wrong.
        timestamp: Some(Stamp {
            place: label("t"),
            format: TimeFormat::Seconds,
            tolerance_secs: 300,
        }),
        signed: list![Part::Timestamp, Part::Text(text(".")), Part::Body],
        // The whole secret as text: its `whsec_` is not a base64 marker here.
        key: KeyEncoding::Text,
    })],
    identity: list![id(json("/id"))],
    event_type: list![kind(json("/type"))],
    // Thin events name the object they are about instead of holding it.
    object: list![json("/data/object/id"), json("/related_object/id")],
    version: list![version(json("/created"), Unit::Seconds)],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text("Retries for up to three days, with growing pauses."),
    find_secret: text("Workbench, Webhooks, your endpoint, Signing secret (whsec_...)."),
    notes: text(
        "The version is the time of the event, not of the object: order is not guaranteed, so \
         read the object again where order matters.",
    ),
    sample_type: text("invoice.paid"),
    sample: Sample {
        headers: list![(
            text("user-agent"),
            text("Stripe/1.0 (+https://stripe.com/docs/webhooks)")
        )],
        body: text(
            r#"{"object":"event","api_version":"2025-09-30.clover","livemode":false,
                "pending_webhooks":1,"request":{"id":null,"idempotency_key":null},
                "data":{"object":{"object":"invoice","amount_paid":2000,"currency":"eur",
                "customer":"cus_sample","status":"paid"}}}"#,
        ),
        object: text("in_sample"),
        form: false,
    },
};

const fn label(label: &'static str) -> Place {
    Place::Label { header: text("stripe-signature"), label: text(label), separator: ',' }
}
