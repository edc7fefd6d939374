//! RevenueCat: a static value in `Authorization`.
//!
//! <https://www.revenuecat.com/docs/integrations/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "revenuecat",
    title: "RevenueCat",
    docs: "https://www.revenuecat.com/docs/integrations/webhooks",
    schemes: items![token("authorization")],
    identity: items![id(json("/event/id"))],
    event_type: items![kind(json("/event/type"))],
    object: items![json("/event/app_user_id")],
    version: items![version(json("/event/event_timestamp_ms"), Unit::Milliseconds)],
    answer: Some(Answer::Status(200)),
    retry: "Not confirmed: five retries, after 5, 10, 20, 40 and 80 minutes.",
    retry_hours: 3,
    find_secret: "Project, Integrations, Webhooks, Authorization header value: exactly the \
         text you set there.",
    notes: "The body is not signed: read the customer again before acting. RevenueCat waits \
         60 s.",
    sample_type: "INITIAL_PURCHASE",
    sample_body: r#"{"api_version":"1.0","event":{"product_id":"monthly","store":"APP_STORE",
        "environment":"SANDBOX"}}"#,
    sample_object: "user_sample",
    ..BLANK
}
.provider();
