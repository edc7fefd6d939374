//! Adyen (platforms and management): HMAC-SHA256 over the body, base64, in `HmacSignature`; the
//! key is hex.
//!
//! <https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "adyen-platform",
    title: "Adyen (platforms and management)",
    docs: "https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/",
    // The `Protocol` header beside it is not looked at: we know the algorithm.
    schemes: items![hmac(in_header("hmacsignature")).base64().key(KeyForm::Hex).scheme()],
    // What is at `/id` or `/data/id` differs by type and may name the object.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id"), json("/data/merchantId")],
    version: items![
        version(json("/timestamp"), Unit::Iso8601),
        version(json("/createdAt"), Unit::Iso8601)
    ],
    retry: "Not confirmed: as for payment webhooks.",
    retry_hours: 720,
    find_secret: "Customer Area, Developers, Webhooks, your webhook, HMAC key.",
    notes: "Payment webhooks are signed otherwise: see adyen. Adyen waits 10 s.",
    sample_type: "balancePlatform.transfer.updated",
    sample_body: r#"{"environment":"test","data":{"balancePlatform":"Sample","status":"booked",
        "amount":{"value":1000,"currency":"EUR"}}}"#,
    sample_object: "1W1UG35U8A9J5ZLG",
    ..BLANK
}
.provider();
