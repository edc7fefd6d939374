//! Brex: Standard Webhooks, delivered by Svix.
//!
//! <https://developer.brex.com/docs/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "brex",
    title: "Brex",
    docs: "https://developer.brex.com/docs/webhooks/",
    schemes: BY_SVIX,
    identity: SVIX_ID,
    event_type: items![kind(json("/event_type"))],
    retry: "On the schedule of Svix: eight tries over about a day.",
    retry_hours: 28,
    find_secret: "GET /v1/webhooks/secrets of the Brex API.",
    notes: "The scheme was read in one catalogue only, not at Brex.",
    sample_type: "TRANSFER_PROCESSED",
    sample_body: r#"{"company_id":"cuacc_sample"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
