//! Billit: HMAC-SHA256 over `{t}.{body}`, hex, in `Billit-Signature`.
//!
//! <https://docs.billit.be/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "billit",
    title: "Billit",
    docs: "https://docs.billit.be/docs/webhooks",
    // Whether a retry is signed anew is not known, so no age is refused.
    schemes: items![
        hmac(label("billit-signature", ",", "s"))
            .undated(label("billit-signature", ",", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    retry: "Not documented; expect retries.",
    find_secret: "The API answers with the secret when the webhook is made.",
    notes: "Where the type of an event is, is not known.",
    sample_type: "unknown",
    sample_object: "",
    ..BLANK
}
.provider();
