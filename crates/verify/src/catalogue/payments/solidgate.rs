//! Solidgate: HMAC-SHA512 over `{public key}{body}{public key}`, base64 of hex, in `signature`.
//!
//! <https://docs.solidgate.com/payments/integrate/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "solidgate",
    title: "Solidgate",
    docs: "https://docs.solidgate.com/payments/integrate/webhooks/",
    // The `merchant` header has the public key too, but it is we who say whose webhook this is.
    schemes: items![
        hmac(in_header("signature"))
            .sha512()
            .encoding(Encoding::Base64OfHex)
            .over(list![
                Part::Setting(text("webhook_public_key")),
                BODY,
                Part::Setting(text("webhook_public_key"))
            ])
            .scheme()
    ],
    settings: items![needed(
        "webhook_public_key",
        "The public key of the webhook (wh_pk_...), beside its secret key."
    )],
    identity: items![id(header("solidgate-event-id"))],
    event_type: items![kind(header("solidgate-event-type"))],
    twins: hold("Orders and subscriptions carry updated_at, so the same body says nothing new."),
    retry: "Not confirmed: after 15 and 30 minutes, then after 1, 2, 4, 8, 16 and 24 hours.",
    retry_hours: 56,
    find_secret: "Hub, Developers, Channels: the webhook secret key (wh_sk_...).",
    notes: "The id of the event is in a header that is not signed. The scheme was read in one \
         catalogue only.",
    sample_type: "card_gate.order.updated",
    sample_body: r#"{"order":{"status":"settle_ok"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
