//! PagerDuty: HMAC-SHA256 over the body, hex, labelled `v1`, in `X-PagerDuty-Signature`.
//!
//! <https://developer.pagerduty.com/docs/verifying-webhook-signatures>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "pagerduty",
    title: "PagerDuty",
    docs: "https://developer.pagerduty.com/docs/verifying-webhook-signatures",
    schemes: items![hmac(label("x-pagerduty-signature", ",", "v1")).scheme()],
    identity: items![id(json("/event/id"))],
    event_type: items![kind(json("/event/event_type"))],
    object: items![json("/event/data/id")],
    version: items![version(json("/event/occurred_at"), Unit::Iso8601)],
    retry: "Not confirmed; several retries over 48 hours are spoken of, then the webhook is \
         disabled for a while.",
    retry_hours: 48,
    find_secret: "Integrations, Generic webhooks (v3), your webhook: the secret, shown once.",
    notes: "PagerDuty waits 5 s for an answer. A test has the type pagey.ping.",
    sample_type: "incident.triggered",
    sample_body: r#"{"event":{"resource_type":"incident","agent":{"id":"PLH1HKV",
        "type":"user_reference"},"data":{"type":"incident","number":2,"status":"triggered",
        "title":"A sample","urgency":"high"}}}"#,
    sample_object: "PGR0VU2",
    ..BLANK
}
.provider();
