//! Cashfree: HMAC-SHA256 over `{timestamp}{body}`, base64, in `x-webhook-signature`.
//!
//! <https://www.cashfree.com/docs/payments/online/webhooks/signature-verification>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cashfree",
    title: "Cashfree",
    docs: "https://www.cashfree.com/docs/payments/online/webhooks/signature-verification",
    // Whether a retry is signed anew is not known, so no age is refused.
    schemes: items![
        hmac(in_header("x-webhook-signature"))
            .base64()
            .undated(in_header("x-webhook-timestamp"), MILLISECONDS)
            .over(list![TIME, BODY])
            .scheme()
    ],
    // `x-idempotency-key` is not signed and not always there.
    identity: items![
        Identity::Joined(list![json("/type"), json("/data/order/order_id"), json("/event_time")]),
        Identity::Digest
    ],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/order/order_id"), json("/data/payment/cf_payment_id")],
    version: items![version(json("/event_time"), Unit::Iso8601)],
    answer: Some(Answer::Status(200)),
    conflicts_are_news: Some("The identity has a time in seconds: two payments of an order in a second share it."),
    retry: "Not documented; expect retries.",
    find_secret: "Merchant Dashboard, Developers, API keys: the client secret.",
    sample_type: "PAYMENT_SUCCESS_WEBHOOK",
    sample_body: r#"{"data":{"order":{"order_amount":2,"order_currency":"INR"},
        "payment":{"cf_payment_id":1453002795,"payment_status":"SUCCESS"}}}"#,
    sample_object: "order_sample",
    ..BLANK
}
.provider();
