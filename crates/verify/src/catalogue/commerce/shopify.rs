//! Shopify: HMAC-SHA256 over the body, base64, in `X-Shopify-Hmac-Sha256`.
//!
//! <https://shopify.dev/docs/apps/build/webhooks/subscribe/https>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "shopify",
    title: "Shopify",
    docs: "https://shopify.dev/docs/apps/build/webhooks/subscribe/https",
    // Newer deliveries use the same headers without `X-`.
    schemes: items![
        hmac(in_header("x-shopify-hmac-sha256")).base64().scheme(),
        hmac(in_header("shopify-hmac-sha256")).base64().scheme(),
    ],
    // One per delivery and the same on a retry; the event id beside it is shared by
    // all subscriptions, two of which may end here.
    identity: items![id(header("x-shopify-webhook-id")), id(header("shopify-webhook-id"))],
    event_type: items![kind(header("x-shopify-topic")), kind(header("shopify-topic"))],
    object: items![json("/id"), json("/admin_graphql_api_id")],
    version: items![version(json("/updated_at"), Unit::Iso8601)],
    twins: hold(
        "Orders, products and other resources carry updated_at, so the same topic with the same \
         body says nothing new. Only shop/redact and customers/redact carry no time.",
    ),
    types_share_body: Some(
        "The topic is a header and the body is the bare resource: orders/create, orders/updated \
         and orders/paid may have one body.",
    ),
    retry: "Eight retries over four hours; then API-made subscriptions are deleted.",
    retry_hours: 4,
    recovery: "None for deliveries: compare with the Admin API by updated_at.",
    find_secret: "The client secret of the app; for webhooks made in the admin, the key shown below \
         their list.",
    notes: "After a rotation the old secret may still sign for an hour: list both.",
    sample_type: "orders/create",
        sample_headers: items![
            (text("x-shopify-shop-domain"), text("sample.myshopify.com")),
            (text("x-shopify-api-version"), text("2025-10")),
            (text("x-shopify-event-id"), text("98880550-7158-44d4-b7cd-2c97c8a091b5")),
        ],
        sample_body: r#"{"email":"jon@example.com","currency":"EUR","total_price":"20.00"}"#,
        sample_object: "820982911946154508",
    ..BLANK
}
.provider();
