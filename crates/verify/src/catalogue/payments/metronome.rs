//! Metronome: HMAC-SHA256 over `{date}` and the body on the next line, hex, in
//! `Metronome-Webhook-Signature`.
//!
//! <https://docs.metronome.com/developer-resources/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "metronome",
    title: "Metronome",
    docs: "https://docs.metronome.com/developer-resources/webhooks/",
    schemes: items![
        hmac(in_header("metronome-webhook-signature"))
            .stamp(in_header("x-metronome-date"), TimeFormat::HttpDate, 300)
            .over(list![TIME, lit("\n"), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    retry: "Not documented; expect retries.",
    find_secret: "Connections, Webhooks, your webhook, Secret.",
    notes: "A delivery that has the time only in `Date` is refused.",
    sample_type: "alerts.spend_threshold_reached",
    sample_body: r#"{"properties":{"customer_id":"sample","threshold":100}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
