//! Coinbase Developer Platform: HMAC-SHA256 over `{timestamp}.{body}`, hex, in
//! `X-Hook0-Signature`.
//!
//! <https://docs.cdp.coinbase.com/webhooks/verify-signatures>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "coinbase-cdp",
    title: "Coinbase Developer Platform",
    docs: "https://docs.cdp.coinbase.com/webhooks/verify-signatures",
    schemes: items![Scheme::Special(Special::Hook0)],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/eventType")), kind(json("/type"))],
    retry: "Not documented.",
    recovery: "GET /platform/v2/data/webhooks/subscriptions/{id}/events lists what was sent, \
         without payloads.",
    find_secret: "The `metadata.secret` in the answer that created the subscription.",
    notes: "No id is documented for all products, so an event is known by its content. Where the \
         signature binds headers (`v1`), those must arrive unchanged.",
    sample_type: "onramp.transaction.updated",
    sample_body: r#"{"data":{"orderId":"sample","status":"ONRAMP_TRANSACTION_STATUS_SUCCESS",
            "purchaseAmount":"10.00","purchaseCurrency":"USDC","destinationNetwork":"base"}}"#,
    ..BLANK
}
.provider();
