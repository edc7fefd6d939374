//! Mollie: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Mollie-Signature`.
//!
//! <https://docs.mollie.com/reference/webhooks-new>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mollie",
    title: "Mollie",
    docs: "https://docs.mollie.com/reference/webhooks-new",
    // For a day after a rotation the header is sent twice, once for each secret.
    schemes: items![hmac(Place::Repeated(text("x-mollie-signature"))).prefix("sha256=").scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/entityId")],
    version: items![version(json("/createdAt"), Unit::Iso8601)],
    retry: "Up to ten tries over about 26 hours; repeated failure blocks the webhook.",
    retry_hours: 26,
    find_secret: "Dashboard, Developers, Webhooks, your webhook, Signing secret.",
    notes: "Webhooks that are named with a payment are unsigned: see mollie-classic. Mollie \
         waits 15 s.",
    sample_type: "payment-link.paid",
    sample_body: r#"{"resource":"event"}"#,
    sample_object: "pl_qng5gbbv8NAZ5gpM5ZYgx",
    ..BLANK
}
.provider();
