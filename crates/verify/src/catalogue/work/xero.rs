//! Xero: HMAC-SHA256 over the body, base64, in `x-xero-signature`.
//!
//! <https://developer.xero.com/documentation/guides/webhooks/overview/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "xero",
    title: "Xero",
    docs: "https://developer.xero.com/documentation/guides/webhooks/overview/",
    // The key looks like base64 and is not decoded.
    schemes: items![hmac(in_header("x-xero-signature")).base64().scheme()],
    batches: items![batch("/events")],
    identity: items![Identity::Joined(list![
        item("/tenantId"),
        item("/eventCategory"),
        item("/resourceId"),
        item("/eventDateUtc")
    ])],
    event_type: items![kind_with(item("/eventCategory"), item("/eventType"))],
    object: items![item("/resourceId")],
    version: items![version(json("/firstEventSequence"), Unit::Plain)],
    conflicts_are_news: Some("The identity leaves out the kind of change: two in one moment share it."),
    // Xero wants no body, also for a refusal, or its intent to receive fails.
    answer: Some(Answer::Silent(200)),
    retry: "Ever more slowly for a day; then the subscription is disabled.",
    retry_hours: 24,
    find_secret: "My apps, your app, Webhooks, Webhooks key.",
    notes: "Xero first sends requests without events, some wrongly signed, to see 200 and 401. \
         It waits 5 s. Gaps between lastEventSequence and firstEventSequence mean lost \
         events.",
    sample_type: "INVOICE.UPDATE",
    sample_body: r#"{"events":[{"resourceUrl":"https://api.xero.com/api.xro/2.0/Invoices/717f2bfc",
        "tenantId":"c2cc9b6e-9458-4c7d-93cc-f02b81b0594f","tenantType":"ORGANISATION",
        "eventDateUtc":"2026-01-02T03:04:05.678"}],"lastEventSequence":1,
        "entropy":"S0m3r4Nd0mt3xt"}"#,
    sample_object: "717f2bfc-c6d4-41fd-b238-3f2f0c0cf777",
    ..BLANK
}
.provider();
