//! Acuity Scheduling: HMAC-SHA256 over the body, base64, in `X-Acuity-Signature`.
//!
//! <https://developers.acuityscheduling.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "acuity",
    title: "Acuity Scheduling",
    docs: "https://developers.acuityscheduling.com/docs/webhooks",
    schemes: items![hmac(in_header("x-acuity-signature")).base64().scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(form("action"))],
    object: items![form("id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Integrations, API, View credentials, API key.",
    notes: "A notice carries no id and no time: two changes of one appointment read the same and \
         count as one event. Read the appointment again by its id.",
    sample_type: "scheduled",
    sample_body: "calendarID=1&appointmentTypeID=1",
    sample_object: "12345",
    sample_form: true,
    ..BLANK
}
.provider();
