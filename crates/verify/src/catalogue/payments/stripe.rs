//! Stripe: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `Stripe-Signature`.
//!
//! <https://docs.stripe.com/webhooks/signature>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "stripe",
    title: "Stripe",
    docs: "https://docs.stripe.com/webhooks/signature",
    // During a secret roll Stripe sends several `v1` values; any may match. The SDKs check only
    // the age. We refuse the future too: a captured request must not stay valid because a clock
    // was wrong. The whole secret is the key: its `whsec_` is not a base64 marker here.
    schemes: items![
        hmac(label("stripe-signature", ",", "v1"))
            .stamp(label("stripe-signature", ",", "t"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    // Thin events name the object they are about instead of holding it.
    object: items![json("/data/object/id"), json("/related_object/id")],
    version: items![version(json("/created"), Unit::Seconds)],
    retry: "Retries for up to three days, with growing pauses.",
    retry_hours: 72,
    recovery: "GET /v1/events lists 30 days; with delivery_success=false also what is pending, of \
         any endpoint.",
    find_secret: "Workbench, Webhooks, your endpoint, Signing secret (whsec_...).",
    notes: "The version is the time of the event, not of the object: order is not guaranteed, so \
         read the object again where order matters.",
    sample_type: "invoice.paid",
        sample_headers: items![(
            text("user-agent"),
            text("Stripe/1.0 (+https://stripe.com/docs/webhooks)")
        )],
        sample_body: r#"{"object":"event","api_version":"2025-09-30.clover","livemode":false,
                "pending_webhooks":1,"request":{"id":null,"idempotency_key":null},
                "data":{"object":{"object":"invoice","amount_paid":2000,"currency":"eur",
                "customer":"cus_sample","status":"paid"}}}"#,
        sample_object: "in_sample",
    ..BLANK
}
.provider();
