//! Stripe (thin events): HMAC-SHA256 over `{timestamp}.{body}`, hex, in `Stripe-Signature`.
//!
//! <https://docs.stripe.com/webhooks?snapshot-or-thin=thin>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "stripe-thin",
    title: "Stripe (thin events)",
    docs: "https://docs.stripe.com/webhooks?snapshot-or-thin=thin",
    // As for snapshot events: several `v1` while a secret is rolled, and the whole secret is the
    // key.
    schemes: items![
        hmac(label("stripe-signature", ",", "v1"))
            .stamp(label("stripe-signature", ",", "t"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/related_object/id")],
    version: items![version(json("/created"), Unit::Iso8601)],
    retry: "Retries for up to three days, with growing pauses.",
    retry_hours: 72,
    recovery: "GET /v2/core/events lists 30 days.",
    find_secret: "Workbench, Webhooks, your event destination, Signing secret (whsec_...).",
    notes: "The payload carries no state: fetch the object at /related_object/url. Some \
         events are about no object.",
    sample_type: "v1.billing.meter.error_report_triggered",
    sample_headers: items![(
        text("user-agent"),
        text("Stripe/1.0 (+https://stripe.com/docs/webhooks)")
    )],
    sample_body: r#"{"object":"v2.core.event","livemode":false,
        "related_object":{"type":"billing.meter",
        "url":"/v1/billing/meters/mtr_sample"}}"#,
    sample_object: "mtr_sample",
    ..BLANK
}
.provider();
