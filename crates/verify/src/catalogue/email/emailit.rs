//! Emailit: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `X-Emailit-Signature`.
//!
//! <https://emailit.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "emailit",
    title: "Emailit",
    docs: "https://emailit.com/docs/webhooks",
    // How the time is written, and whether a retry is signed anew, is not known.
    schemes: items![
        hmac(in_header("x-emailit-signature"))
            .undated(in_header("x-emailit-timestamp"), TimeFormat::Nonce)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    retry: "Not documented; expect retries.",
    find_secret: "Dashboard, Webhooks, your webhook, Signing secret.",
    notes: "That the signature is hex, was assumed. Where the type of an event is, is not \
         known.",
    sample_type: "unknown",
    sample_object: "",
    ..BLANK
}
.provider();
