//! Tally: HMAC-SHA256 over the body, base64, in `Tally-Signature`.
//!
//! <https://tally.so/help/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "tally",
    title: "Tally",
    docs: "https://tally.so/help/webhooks",
    schemes: items![hmac(in_header("tally-signature")).base64().scheme()],
    identity: items![id(json("/eventId"))],
    event_type: items![kind(json("/eventType"))],
    object: items![json("/data/responseId")],
    version: items![version(json("/createdAt"), Unit::Iso8601)],
    retry: "Five retries: after 5 and 30 minutes, an hour, six hours and a day.",
    retry_hours: 32,
    find_secret: "Your form, Integrations, Webhooks, Signing secret.",
    notes: "Tally waits 10 s for an answer.",
    sample_type: "FORM_RESPONSE",
    sample_body: r#"{"data":{"formId":"VwbNEw","formName":"A sample","fields":[]}}"#,
    sample_object: "2wgx4n",
    ..BLANK
}
.provider();
