//! WooCommerce: HMAC-SHA256 over the body, base64, in `X-WC-Webhook-Signature`.
//!
//! <https://woocommerce.com/document/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "woocommerce",
    title: "WooCommerce",
    docs: "https://woocommerce.com/document/webhooks/",
    schemes: items![hmac(in_header("x-wc-webhook-signature")).base64().scheme()],
    // Nobody says that a retry keeps the delivery id. What is deleted has no date.
    identity: items![
        Identity::Joined(list![
            header("x-wc-webhook-topic"),
            json("/id"),
            json("/date_modified_gmt")
        ]),
        Identity::JoinedDigest(list![header("x-wc-webhook-topic")])
    ],
    event_type: items![kind(header("x-wc-webhook-topic"))],
    object: items![json("/id")],
    version: items![version(json("/date_modified_gmt"), Unit::Iso8601)],
    // Saving a webhook sends a form that is not signed.
    handshakes: items![asks(POST, Wants::Has(form("webhook_id")))],
    twins: hold("The resources carry date_modified_gmt, so the same body says nothing new."),
    types_share_body: Some(
        "The topic is a header and the body is the bare resource: order.created and order.updated \
         may have one body.",
    ),
    conflicts_are_news: Some(
        "The identity has the time of the change in seconds: two changes in a second share it.",
    ),
    retry: "Never; more than five failures in a row disable the webhook.",
    find_secret: "WooCommerce, Settings, Advanced, Webhooks, your webhook, Secret: the one \
         you chose there.",
    notes: "WooCommerce waits 60 s.",
    sample_type: "order.updated",
    sample_headers: items![
        (text("x-wc-webhook-resource"), text("order")),
        (text("x-wc-webhook-event"), text("updated")),
        (text("x-wc-webhook-source"), text("https://shop.example.com/"))
    ],
    sample_body: r#"{"status":"processing","currency":"EUR","total":"20.00",
        "billing":{"email":"jon@example.com"}}"#,
    sample_object: "727",
    ..BLANK
}
.provider();
