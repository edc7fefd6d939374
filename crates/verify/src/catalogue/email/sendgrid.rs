//! SendGrid: ECDSA on P-256 over the time and the body, base64, in
//! `X-Twilio-Email-Event-Webhook-Signature`.
//!
//! <https://docs.sendgrid.com/for-developers/tracking-events/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "sendgrid",
    title: "SendGrid",
    docs: "https://docs.sendgrid.com/for-developers/tracking-events/\
           getting-started-event-webhook-security-features",
    // Retries go on for a day, and nobody says whether they are signed anew.
    schemes: items![
        signed_by(
            Algorithm::EcdsaP256Sha256,
            in_header("x-twilio-email-event-webhook-signature")
        )
        .undated(in_header("x-twilio-email-event-webhook-timestamp"), SECONDS)
        .over(list![TIME, BODY])
        .scheme()
    ],
    batches: items![batch("")],
    identity: items![id(item("/sg_event_id"))],
    event_type: items![kind(item("/event"))],
    object: items![item("/sg_message_id")],
    version: items![version(item("/timestamp"), Unit::Seconds)],
    retry: "At growing intervals for up to 24 hours.",
    retry_hours: 24,
    recovery: "Email Logs lists what became of each message for 30 days, in slices of time; the \
         older GET /v3/messages is a paid addition of six requests a minute.",
    find_secret: "Settings, Mail Settings, Event Webhooks, the webhook, Security features: turn on \
         Signed Event Webhook and copy the verification key.",
    notes: "The body ends with a line break that is signed; let no proxy trim it.",
    sample_type: "delivered",
    sample_body: r#"[{"email":"alice@example.com","smtp-id":"<14c5d75ce93.dfd.64b469@ismtpd-555>",
        "category":["receipts"],"response":"250 OK"}]"#,
    sample_object: "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0",
    ..BLANK
}
.provider();
