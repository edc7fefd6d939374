//! BigCommerce: Standard Webhooks, keyed with the text of the client secret.
//!
//! <https://developer.bigcommerce.com/docs/integrations/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "bigcommerce",
    title: "BigCommerce",
    docs: "https://developer.bigcommerce.com/docs/integrations/webhooks",
    experimental: true,
    schemes: items![standard(&WEBHOOK, KeyForm::Text)],
    identity: WEBHOOK_ID,
    event_type: items![kind(json("/scope"))],
    object: items![json("/data/id")],
    version: items![version(json("/created_at"), Unit::Seconds)],
    answer: Some(Answer::Status(200)),
    retry: "Growing pauses from a minute to a day, over 48 hours; then the webhook is \
         disabled.",
    retry_hours: 48,
    find_secret: "Developer Portal, your app: the client secret.",
    notes: "Whether the client secret is the key as it stands was not confirmed. BigCommerce \
         waits 10 s.",
    sample_type: "store/order/created",
    sample_body: r#"{"store_id":"1025646","producer":"stores/abcde","data":{"type":"order"}}"#,
    sample_object: "250",
    ..BLANK
}
.provider();
