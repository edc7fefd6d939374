//! incident.io: Standard Webhooks.
//!
//! <https://docs.incident.io/integrations/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "incident-io",
    title: "incident.io",
    docs: "https://docs.incident.io/integrations/webhooks",
    schemes: BY_WEBHOOK,
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/event_type"))],
    retry: "Retries, on a schedule that is not published.",
    find_secret: "Settings, Webhooks, your endpoint, Signing secret (whsec_...).",
    notes: "The scheme was read in one implementation only, not at incident.io.",
    sample_type: "public_incident.incident_created_v2",
    sample_body: r#"{"public_incident.incident_created_v2":{"id":"sample"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
