//! Acuity Scheduling: HMAC-SHA256 over the body, base64, in `X-Acuity-Signature`.
//!
//! <https://developers.acuityscheduling.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "acuity",
    title: "Acuity Scheduling",
    docs: "https://developers.acuityscheduling.com/docs/webhooks",
    schemes: items![hmac(in_header("x-acuity-signature")).base64().scheme()],
    // Two changes of one appointment read the same.
    identity: items![Identity::Each],
    event_type: items![kind(form("action"))],
    object: items![form("id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Integrations, API, View credentials, API key.",
    notes: "A notice carries no id and no time, so a retry is an event of its own: read the \
         appointment again by its id.",
    sample_type: "scheduled",
    sample_body: "calendarID=1&appointmentTypeID=1",
    sample_object: "12345",
    sample_form: true,
    ..BLANK
}
.provider();
