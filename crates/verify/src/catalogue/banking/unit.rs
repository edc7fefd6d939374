//! Unit: HMAC-SHA1 over the body, base64, in `X-Unit-Signature`.
//!
//! <https://www.unit.co/docs/api/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "unit",
    title: "Unit",
    docs: "https://www.unit.co/docs/api/webhooks/",
    schemes: items![hmac(in_header("x-unit-signature")).sha1().base64().scheme()],
    batches: items![batch("/data")],
    identity: items![id(item("/id"))],
    event_type: items![kind(item("/type"))],
    version: items![version(item("/attributes/createdAt"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    recovery: "GET /events lists 90 days, at most 1,000 at once.",
    find_secret: "Dashboard, Developer, Webhooks, your webhook, Token: the one you chose \
         there.",
    notes: "One of its SDKs hashes the JSON as it writes it again; Oncebox takes the bytes as \
         they came.",
    sample_type: "customer.created",
    sample_body: r#"{"data":[{"attributes":{},"relationships":{"customer":{"data":{"id":"10000",
        "type":"individualCustomer"}}}}]}"#,
    sample_object: "",
    ..BLANK
}
.provider();
