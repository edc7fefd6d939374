//! Paystack: HMAC-SHA512 over the body, hex, in `x-paystack-signature`.
//!
//! <https://paystack.com/docs/payments/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "paystack",
    title: "Paystack",
    docs: "https://paystack.com/docs/payments/webhooks/",
    schemes: items![hmac(in_header("x-paystack-signature")).sha512().scheme()],
    // There is no event id, and some objects have no number.
    identity: items![Identity::Joined(list![json("/event"), json("/data/id")]), Identity::Digest],
    event_type: items![kind(json("/event"))],
    object: items![json("/data/id"), json("/data/reference")],
    answer: Some(Answer::Status(200)),
    conflicts_are_news: Some("The identity names the object: reminders and updates of it share one."),
    retry: "Live: every three minutes four times, then hourly for 72 hours; test: hourly for \
         ten hours.",
    retry_hours: 73,
    find_secret: "Dashboard, Settings, API Keys and Webhooks: the secret key (sk_...).",
    notes: "Two events of one type about one object count as one.",
    sample_type: "charge.success",
    sample_body: r#"{"data":{"domain":"test","status":"success","reference":"qTPrJoy9Bx",
        "amount":10000,"currency":"NGN"}}"#,
    sample_object: "302961",
    ..BLANK
}
.provider();
