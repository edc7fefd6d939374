//! Airwallex: HMAC-SHA256 over `{timestamp}{body}`, hex, in `x-signature`.
//!
//! <https://www.airwallex.com/docs/developer-tools/webhooks/listen-for-webhook-events>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "airwallex",
    title: "Airwallex",
    docs: "https://www.airwallex.com/docs/developer-tools/webhooks/listen-for-webhook-events",
    // Whether a retry is signed anew is not known, so no age is refused.
    schemes: items![
        hmac(in_header("x-signature"))
            .undated(in_header("x-timestamp"), MILLISECONDS)
            .over(list![TIME, BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/name"))],
    object: items![json("/data/object/id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    answer: Some(Answer::Status(200)),
    retry: "Retries for about three days.",
    retry_hours: 72,
    find_secret: "Web app, Developer, Webhooks, your webhook, Secret.",
    sample_type: "payment_intent.succeeded",
    sample_body: r#"{"account_id":"acct_sample","data":{"object":{"amount":100,"currency":"USD",
        "status":"SUCCEEDED"}}}"#,
    sample_object: "int_sample",
    ..BLANK
}
.provider();
