//! Revolut: HMAC-SHA256 over `v1.{milliseconds}.{body}`, hex after `v1=`, in `Revolut-Signature`.
//!
//! <https://developer.revolut.com/docs/guides/manage-accounts/webhooks/about-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "revolut",
    title: "Revolut",
    docs: "https://developer.revolut.com/docs/guides/manage-accounts/webhooks/about-webhooks",
    schemes: items![
        hmac(label("revolut-signature", ",", "v1"))
            .stamp(in_header("revolut-request-timestamp"), MILLISECONDS, 300)
            .over(list![lit("v1."), TIME, lit("."), BODY])
            .scheme()
    ],
    // There is no event id; only the merchant API tells an order.
    identity: items![Identity::Joined(list![json("/event"), json("/order_id")]), Identity::Digest],
    event_type: items![kind(json("/event"))],
    object: items![json("/order_id"), json("/data/id")],
    retry: "Three more tries, ten minutes apart.",
    retry_hours: 1,
    find_secret: "The API answers with signing_secret (wsk_...) when the webhook is made.",
    notes: "Two events of one type about one order count as one: read the order where that \
         matters.",
    sample_type: "ORDER_COMPLETED",
    sample_body: r#"{"merchant_order_ext_ref":"Test #3928"}"#,
    sample_object: "9fc01989-3f61-4484-a5d9-ffe768531be9",
    ..BLANK
}
.provider();
