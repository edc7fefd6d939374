//! PayPro Global: plain SHA-256 over a few form fields and the validation key, hex, in the form.
//!
//! <https://developers.payproglobal.com/docs/integrate-with-paypro-global/webhook-ipn/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "paypro-global",
    title: "PayPro Global",
    docs: "https://developers.payproglobal.com/docs/integrate-with-paypro-global/webhook-ipn/",
    experimental: true,
    schemes: items![
        hmac(Place::Form(text("SIGNATURE")))
            .algorithm(Algorithm::Sha256)
            .over(list![
                Part::Form(text("ORDER_ID")),
                Part::Form(text("ORDER_STATUS")),
                Part::Form(text("ORDER_TOTAL_AMOUNT")),
                Part::Form(text("CUSTOMER_EMAIL")),
                Part::Secret,
                Part::Form(text("TEST_MODE")),
                Part::Form(text("IPN_TYPE_NAME"))
            ])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(form("IPN_TYPE_NAME"))],
    object: items![form("ORDER_ID")],
    // What is not signed could be changed, and the digest with it.
    guard: Guard::Signed,
    retry: "Not confirmed: every 30 minutes, three times.",
    retry_hours: 2,
    find_secret: "Store settings, Webhooks (IPN), Validation key.",
    notes: "Only seven fields are signed, and without separators: read the order again before \
         acting. The scheme was read in one catalogue only.",
    sample_type: "OrderCharged",
    sample_body: "ORDER_STATUS=Processed&ORDER_TOTAL_AMOUNT=10.00\
         &CUSTOMER_EMAIL=a%40b.example&TEST_MODE=1",
    sample_object: "1",
    sample_form: true,
    ..BLANK
}
.provider();
