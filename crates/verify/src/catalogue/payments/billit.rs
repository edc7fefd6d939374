//! Billit: HMAC-SHA256 over `{t}.{body}`, hex, in `Billit-Signature`.
//!
//! <https://docs.accesspoint.billit.eu/docs/webhooks-signature>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "billit",
    title: "Billit",
    docs: "https://docs.accesspoint.billit.eu/docs/webhooks-signature",
    // Whether a retry is signed anew is not known, so no age is refused.
    schemes: items![
        hmac(label("billit-signature", ",", "s"))
            .undated(label("billit-signature", ",", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/EntityType"))],
    object: items![json("/OrderID")],
    retry: "Not documented; expect retries.",
    find_secret: "The API answers with the secret when the webhook is made.",
    notes: "Two events with the same body, byte for byte, count as one.",
    sample_type: "Order",
    sample_body: r#"{"Reference":"sample"}"#,
    sample_object: "12345",
    ..BLANK
}
.provider();
