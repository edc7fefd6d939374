//! Razorpay: HMAC-SHA256 over the body, hex, in `X-Razorpay-Signature`.
//!
//! <https://razorpay.com/docs/webhooks/validate-test/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "razorpay",
    title: "Razorpay",
    docs: "https://razorpay.com/docs/webhooks/validate-test/",
    schemes: items![hmac(in_header("x-razorpay-signature")).scheme()],
    identity: items![id(header("x-razorpay-event-id"))],
    event_type: items![kind(json("/event"))],
    object: items![
        json("/payload/payment/entity/id"),
        json("/payload/refund/entity/id"),
        json("/payload/subscription/entity/id"),
        json("/payload/order/entity/id")
    ],
    version: items![version(json("/created_at"), Unit::Seconds)],
    twins: hold("Each body has created_at and the ids of what it is about."),
    retry: "Growing pauses for 24 hours; then the webhook is disabled.",
    retry_hours: 24,
    recovery: "The dashboard replays events that were not acknowledged, of the last seven days, \
         five times a day.",
    find_secret: "Account and Settings, Webhooks, your webhook, Secret: the one you chose \
         there.",
    notes: "Razorpay waits 5 s. The id of the event is in a header that is not signed.",
    sample_type: "payment.captured",
    sample_body: r#"{"entity":"event","account_id":"acc_sample","contains":["payment"],
        "payload":{"payment":{"entity":{"amount":50000,"currency":"INR",
        "status":"captured"}}}}"#,
    sample_object: "pay_DESlfW9H8K9uqM",
    ..BLANK
}
.provider();
