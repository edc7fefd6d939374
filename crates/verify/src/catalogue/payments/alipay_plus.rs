//! Alipay+ and Antom: RSA with SHA-256 over method, path, client, time and body, in `Signature`.
//!
//! <https://docs.antom.com/ac/ams/digital_signature>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "alipay-plus",
    title: "Alipay+ and Antom",
    docs: "https://docs.antom.com/ac/ams/digital_signature",
    experimental: true,
    // Nobody says whether retries are signed anew, so the time may have any age.
    schemes: items![
        signed_by(Algorithm::RsaSha256, label("signature", ", ", "signature"))
            .encoding(Encoding::Base64Percent)
            .undated(in_header("request-time"), ISO)
            .over(list![
                Part::Method,
                lit(" "),
                Part::PathAndQuery,
                lit("\n"),
                Part::Header(text("client-id")),
                lit("."),
                TIME,
                lit("."),
                BODY,
            ])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/notifyType"))],
    answer: Some(Answer::Exactly {
        status: 200,
        content_type: "application/json",
        body: r#"{"result":{"resultCode":"SUCCESS","resultStatus":"S","resultMessage":"success"}}"#,
    }),
    retry: "Up to 8 times over 24 hours.",
    retry_hours: 24,
    find_secret: "Dashboard, Developer, Quick start or Integration resources: the public key of \
         Alipay+ or Antom, not your own.",
    notes: "The path is signed, so Oncebox must know the public URL. Some products want the answer \
         to be signed too; Oncebox does not do that. Events are told apart by their bodies.",
    sample_type: "PAYMENT_RESULT",
    sample_headers: items![(text("client-id"), text("SANDBOX_5Y0000000000001"))],
    sample_body: r#"{"result":{"resultCode":"SUCCESS","resultStatus":"S",
        "resultMessage":"success"},"paymentRequestId":"pay_1","paymentAmount":{"value":"100",
        "currency":"USD"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
