//! Utila: RSA-PSS with SHA-512 over the body, base64, in `x-utila-signature`.
//!
//! <https://docs.utila.io/reference/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "utila",
    title: "Utila",
    docs: "https://docs.utila.io/reference/webhooks",
    schemes: items![signed_by(Algorithm::RsaPssSha512, in_header("x-utila-signature")).scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/resource")],
    retry: "Not documented in detail; for up to 24 hours.",
    retry_hours: 24,
    find_secret: "The documentation of webhooks has the public key.",
    notes: "Whether retries keep the id is not confirmed. A salt as long as the hash and the longest \
         salt are both accepted.",
    sample_type: "TRANSACTION_CREATED",
    sample_body: r#"{"vault":"vaults/3bf247bc8ee2c","resourceType":"TRANSACTION"}"#,
    sample_object: "vaults/3bf247bc8ee2c/transactions/b6e3cd32e827",
    ..BLANK
}
.provider();
