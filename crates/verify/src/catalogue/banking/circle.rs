//! Circle: ECDSA on P-256 over the body, base64, in `X-Circle-Signature`.
//!
//! <https://developers.circle.com/wallets/webhook-notifications>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "circle",
    title: "Circle",
    docs: "https://developers.circle.com/wallets/webhook-notifications",
    schemes: items![
        signed_by(Algorithm::EcdsaP256Sha256, in_header("x-circle-signature")).scheme()
    ],
    identity: items![id(json("/notificationId"))],
    event_type: items![kind(json("/notificationType"))],
    handshakes: items![asks(HEAD, Wants::Method)],
    retry: "11 times: after 1, 10 and 30 s, 1 and 15 minutes, then 1, 3, 5, 6, 10 and 11 hours.",
    retry_hours: 37,
    find_secret: "`GET /v2/notifications/publicKey/{id}` gives the key that `X-Circle-Key-Id` names.",
    notes: "Oncebox does not fetch the key, for that needs your API key; it tries those of the \
         source. Whether retries keep the notification id is not confirmed.",
    sample_type: "transactions.outbound",
    sample_body: r#"{"subscriptionId":"00000000-0000-4000-8000-000000000000","notification":{"id":"tx_1",
        "state":"COMPLETE"},"timestamp":"2026-01-02T03:04:05.000Z","version":2}"#,
    sample_object: "",
    ..BLANK
}
.provider();
