//! SHOPLINE: HMAC-SHA256 over the body, hex, in `X-Shopline-Hmac-Sha256`.
//!
//! <https://developer.shopline.com/docs/webhooks/webhooks-overview/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "shopline",
    title: "SHOPLINE",
    docs: "https://developer.shopline.com/docs/webhooks/webhooks-overview/",
    // The documentation shows base64; deliveries are hex.
    schemes: items![hmac(in_header("x-shopline-hmac-sha256")).scheme()],
    identity: items![id(header("x-shopline-webhook-id"))],
    event_type: items![kind(header("x-shopline-topic"))],
    object: items![json("/id")],
    twins: hold("The resources carry updated_at, so the same body says nothing new."),
    types_share_body: Some(
        "The topic is a header and the body is the bare resource, as with Shopify.",
    ),
    answer: Some(Answer::Status(200)),
    retry: "19 tries over 48 hours; then the webhook is removed.",
    retry_hours: 48,
    find_secret: "Partner portal, your app: the app secret.",
    notes: "SHOPLINE waits 5 s. The id of the event is in a header that is not signed.",
    sample_type: "orders/create",
    sample_body: r#"{"currency":"USD","financial_status":"paid"}"#,
    sample_object: "21056716489012345",
    ..BLANK
}
.provider();
