//! Mercado Pago: HMAC-SHA256 over ids and a time, hex, in `x-signature`.
//!
//! <https://www.mercadopago.com/developers/en/docs/your-integrations/notifications/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mercadopago",
    title: "Mercado Pago",
    docs: "https://www.mercadopago.com/developers/en/docs/your-integrations/notifications/webhooks",
    schemes: items![Scheme::Special(Special::MercadoPago)],
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/action")), kind(json("/type")), kind(query("type"))],
    object: items![query("data.id"), json("/data/id")],
    version: items![version(json("/date_created"), Unit::Iso8601)],
    // Of a request only the object's id, the request's id and the time are signed.
    guard: Guard::Signed,
    answer: Some(Answer::Status(200)),
    retry: "Every 15 minutes, then with growing pauses; answers must come within 22 seconds.",
    find_secret: "Your integrations, your application, Webhooks, Secret signature.",
    notes: "The body is not signed at all: fetch the object that `data.id` names before you act. \
         The time is signed but its age is not limited, for it is not known whether retries keep \
         it. Notifications of QR codes are not signed and refused.",
    sample_type: "payment.updated",
    sample_headers: items![(text("x-request-id"), text("sample-request"))],
    sample_body: r#"{"api_version":"v1","live_mode":false,"type":"payment","user_id":44444,
            "data":{"id":"999999999"}}"#,
    sample_object: "999999999",
    ..BLANK
}
.provider();
