//! Shopify: HMAC-SHA256 over the body, base64, in `X-Shopify-Hmac-Sha256`.
//!
//! <https://shopify.dev/docs/apps/build/webhooks/subscribe/https>

use super::{body_hmac, header, id, json, kind, text, version};
use crate::provider::{Encoding, Guard, Provider, Sample, Unit};

pub(super) static SHOPIFY: Provider = Provider {
    name: text("shopify"),
    title: text("Shopify"),
    docs: text("https://shopify.dev/docs/apps/build/webhooks/subscribe/https"),
    // Newer deliveries use the same headers without `X-`.
    schemes: list![
        body_hmac("x-shopify-hmac-sha256", "", Encoding::Base64),
        body_hmac("shopify-hmac-sha256", "", Encoding::Base64),
    ],
    // One per delivery and the same on a retry; the event id beside it is shared by
    // all subscriptions, two of which may end here.
    identity: list![id(header("x-shopify-webhook-id")), id(header("shopify-webhook-id"))],
    event_type: list![kind(header("x-shopify-topic")), kind(header("shopify-topic"))],
    object: list![json("/id"), json("/admin_graphql_api_id")],
    version: list![version(json("/updated_at"), Unit::Iso8601)],
    volatile: list![],
    guard: Guard::Content,
    form_payload: None,
    handshake: None,
    answer: None,
    retry: text("Eight retries over four hours; then API-made subscriptions are deleted."),
    find_secret: text(
        "The client secret of the app; for webhooks made in the admin, the key shown below \
         their list.",
    ),
    notes: text("After a rotation the old secret may still sign for an hour: list both."),
    sample_type: text("orders/create"),
    sample: Sample {
        headers: list![
            (text("x-shopify-shop-domain"), text("sample.myshopify.com")),
            (text("x-shopify-api-version"), text("2025-10")),
            (text("x-shopify-event-id"), text("98880550-7158-44d4-b7cd-2c97c8a091b5")),
        ],
        body: text(r#"{"email":"jon@example.com","currency":"EUR","total_price":"20.00"}"#),
        object: text("820982911946154508"),
        form: false,
    },
};
