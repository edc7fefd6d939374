//! NMI: HMAC-SHA256 over `{t}.{body}`, hex, in `Webhook-Signature`; `t` is a nonce.
//!
//! <https://docs.nmi.com/reference/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "nmi",
    title: "NMI",
    docs: "https://docs.nmi.com/reference/webhooks",
    // What is called `t` is no time.
    schemes: items![
        hmac(label("webhook-signature", ",", "s"))
            .undated(label("webhook-signature", ",", "t"), TimeFormat::Nonce)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/event_id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/event_body/transaction_id")],
    answer: Some(Answer::Status(200)),
    retry: "Up to 20 tries over three days.",
    retry_hours: 72,
    find_secret: "Merchant portal, Settings, Webhooks, Signing key.",
    sample_type: "transaction.sale.success",
    sample_body: r#"{"event_body":{"condition":"pendingsettlement"}}"#,
    sample_object: "1234567890",
    ..BLANK
}
.provider();
