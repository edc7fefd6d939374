//! TabaPay: HMAC-SHA256 over `{t}.{body}`, hex, in `X-HMAC-Signature`.
//!
//! <https://developers.tabapay.com/reference/verifying-webhook-signatures>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "tabapay",
    title: "TabaPay",
    experimental: true,
    docs: "https://developers.tabapay.com/reference/verifying-webhook-signatures",
    // For 48 hours after a rotation `v2` is made with the old secret; it is not read. Whether a
    // retry is signed anew is not known, so no age is refused.
    schemes: items![
        hmac(label("x-hmac-signature", ",", "v1"))
            .undated(label("x-hmac-signature", ",", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(header("idempotency-key"))],
    twins: hold("Each body is about one transaction and its state."),
    retry: "Not documented; expect retries.",
    find_secret: "POST /v2/clients/{ClientID}/webhooks/secrets of the TabaPay API, shown \
         once.",
    notes: "Give Oncebox a new secret at once. The id of the event is in a header that is not \
         signed. Where the type of an event is, is not known.",
    sample_type: "unknown",
    sample_object: "",
    ..BLANK
}
.provider();
