//! Customer.io: HMAC-SHA256 over `v0:{timestamp}:{body}`, hex, in `X-CIO-Signature`.
//!
//! <https://docs.customer.io/integrations/data-out/connections/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "customer-io",
    title: "Customer.io",
    docs: "https://docs.customer.io/integrations/data-out/connections/webhooks/",
    // It retries for a week, and does not say that it signs again.
    schemes: items![
        hmac(in_header("x-cio-signature"))
            .undated(in_header("x-cio-timestamp"), SECONDS)
            .over(list![lit("v0:"), TIME, lit(":"), BODY])
            .scheme()
    ],
    identity: items![id(json("/event_id"))],
    event_type: items![kind_with(json("/object_type"), json("/metric"))],
    object: items![json("/data/delivery_id"), json("/data/customer_id")],
    version: items![version(json("/timestamp"), Unit::Seconds)],
    retry: "With growing pauses for seven days; later events wait behind the one that fails.",
    retry_hours: 168,
    find_secret: "Integrations, Reporting webhooks, your webhook, Signing key.",
    notes: "Customer.io waits 4 s for an answer.",
    sample_type: "email.sent",
    sample_body: r#"{"data":{"customer_id":"42","subject":"A sample",
        "recipient":"alice@example.com"}}"#,
    sample_object: "RPILAgABcRhIBqSp7kiPekGBIeVh",
    ..BLANK
}
.provider();
