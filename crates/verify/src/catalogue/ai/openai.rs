//! OpenAI: Standard Webhooks; a secret without `whsec_` is taken as text, as its SDK does.
//!
//! <https://platform.openai.com/docs/guides/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "openai",
    title: "OpenAI",
    docs: "https://platform.openai.com/docs/guides/webhooks",
    schemes: items![standard(&WEBHOOK, KeyForm::WhsecOrText)],
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    version: items![version(json("/created_at"), Unit::Seconds)],
    retry: "Retries for up to 72 hours, with growing pauses.",
    retry_hours: 72,
    find_secret: "Settings, your project, Webhooks, Signing secret (whsec_...), shown once.",
    notes: "The payload is thin: fetch the object by its id.",
    sample_type: "response.completed",
    sample_body: r#"{"object":"event","id":"evt_sample","data":{}}"#,
    sample_object: "resp_sample",
    ..BLANK
}
.provider();
