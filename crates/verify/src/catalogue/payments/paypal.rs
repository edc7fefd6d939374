//! PayPal: RSA with SHA-256 over ids, the time and a CRC-32 of the body, base64, in
//! `PAYPAL-TRANSMISSION-SIG`, by a certificate whose URL is in `PAYPAL-CERT-URL`.
//!
//! <https://developer.paypal.com/api/rest/webhooks/rest/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "paypal",
    title: "PayPal",
    docs: "https://developer.paypal.com/api/rest/webhooks/rest/",
    // Retries go on for three days, and nobody says whether they are signed anew.
    schemes: items![
        signed_by(Algorithm::RsaSha256, in_header("paypal-transmission-sig"))
            .undated(in_header("paypal-transmission-time"), ISO)
            .over(list![
                Part::Header(text("paypal-transmission-id")),
                lit("|"),
                TIME,
                lit("|"),
                Part::Secret,
                lit("|"),
                Part::BodyCrc32,
            ])
            .key(KeyForm::Certificate(CertificateAt {
                url: header("paypal-cert-url"),
                hosts: list![text("*.paypal.com"), text("*.sandbox.paypal.com")],
                path_end: text(""),
                subject_end: text(".paypal.com"),
                chained: true,
            }))
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/resource/id")],
    version: items![
        version(json("/resource/update_time"), Unit::Iso8601),
        version(json("/create_time"), Unit::Iso8601),
    ],
    // Another body with the same CRC-32 is easily made, so what is signed stands for the event.
    guard: Guard::Signed,
    retry: "Up to 25 times over three days.",
    retry_hours: 72,
    recovery: "GET /v1/notifications/webhooks-events lists events, POST .../{id}/resend sends one \
         again.",
    find_secret: "Apps and credentials, your app, Webhooks: the Webhook ID. It is no secret, but it \
         is signed; the key is fetched from PayPal.",
    notes: "The signature covers the body only by its CRC-32, which can be met by another body. \
         Oncebox lets each transmission in for one event, but whoever holds one back can send \
         another body in its place: read the resource again by its id before acting on it.",
    sample_type: "PAYMENT.CAPTURE.COMPLETED",
    sample_headers: items![
        (
            text("paypal-cert-url"),
            text("https://api.paypal.com/v1/notifications/certs/CERT-sample")
        ),
        (text("paypal-auth-algo"), text("SHA256withRSA")),
    ],
    sample_body: r#"{"event_version":"1.0","resource_type":"capture","resource_version":"2.0",
        "summary":"Payment completed for $ 7.47 USD","resource":{"status":"COMPLETED",
        "amount":{"currency_code":"USD","value":"7.47"},"final_capture":true}}"#,
    sample_object: "42311647XV020574X",
    ..BLANK
}
.provider();
