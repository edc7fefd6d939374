//! Shopify's next generation of events: HMAC-SHA256 over the body, base64, in
//! `Shopify-Hmac-Sha256`.
//!
//! <https://shopify.dev/docs/apps/build/events/verify-deliveries>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "shopify-events",
    title: "Shopify Events (next generation)",
    docs: "https://shopify.dev/docs/apps/build/events/verify-deliveries",
    experimental: true,
    schemes: items![hmac(in_header("shopify-hmac-sha256")).base64().scheme()],
    identity: items![id(header("shopify-webhook-id"))],
    // Topic and action are in the body too, where they are signed.
    event_type: items![kind_with(json("/topic"), json("/action"))],
    object: items![
        json("/query_variables/productId"),
        json("/query_variables/customerId"),
        json("/query_variables/orderId"),
    ],
    version: items![
        version(json("/data/product/updatedAt"), Unit::Iso8601),
        version(json("/data/customer/updatedAt"), Unit::Iso8601),
        version(json("/data/order/updatedAt"), Unit::Iso8601),
    ],
    twins: deliver(
        "Without a query a body tells which field changed, not to what: two changes read the same.",
    ),
    retry: "Not documented for events; webhooks are sent again eight times over four hours.",
    retry_hours: 4,
    recovery: "None for deliveries: compare with the Admin API by updatedAt.",
    find_secret: "The client secret of the app.",
    notes: "Each subscription shapes its own payload. Let the query hold updatedAt: it orders the \
         events of an object, and tells two changes from one that was sent twice. After a rotation \
         the old secret may still sign for an hour: list both.",
    sample_type: "Product.update",
    sample_headers: items![
        (text("shopify-shop-domain"), text("sample.myshopify.com")),
        (text("shopify-topic"), text("Product")),
        (text("shopify-action"), text("update")),
    ],
    sample_body: r#"{"handle":"price-sync","fields_changed":{"added":[],"updated":
        ["product[id: 'gid://shopify/Product/123'].variants[id: 'gid://shopify/ProductVariant/456'].price"],
        "removed":[]},"query_variables":{},"data":{"product":{}}}"#,
    sample_object: "gid://shopify/Product/123",
    ..BLANK
}
.provider();
