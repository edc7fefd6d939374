//! Recurly: HMAC-SHA256 over `{milliseconds}.{body}`, hex, in `recurly-signature`.
//!
//! <https://docs.recurly.com/recurly-subscriptions/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "recurly",
    title: "Recurly",
    docs: "https://docs.recurly.com/recurly-subscriptions/docs/webhooks",
    // The time comes first, then the signatures, without labels.
    schemes: items![
        hmac(Place::Rest { header: text("recurly-signature"), separator: ',' })
            .stamp(
                Place::First { header: text("recurly-signature"), separator: ',' },
                MILLISECONDS,
                300
            )
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    // There is no event id: `/id` names the object.
    identity: items![
        Identity::Joined(list![
            json("/object_type"),
            json("/id"),
            json("/event_type"),
            json("/event_time")
        ]),
        Identity::Digest
    ],
    event_type: items![kind_with(json("/object_type"), json("/event_type"))],
    object: items![json("/uuid"), json("/id")],
    version: items![version(json("/event_time"), Unit::Iso8601)],
    conflicts_are_news: Some("The identity has a time in seconds: two changes in a second share it."),
    retry: "Ten retries with growing pauses over about three days.",
    retry_hours: 74,
    find_secret: "Integrations, Webhooks, your endpoint, HMAC key.",
    notes: "JSON webhooks only: XML ones are not signed.",
    sample_type: "account.created",
    sample_body: r#"{"site_id":"site_sample","account_code":"1"}"#,
    sample_object: "qktnyc7d3o8x",
    ..BLANK
}
.provider();
