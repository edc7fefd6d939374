//! Ripple Collections: HMAC-SHA256 over `{milliseconds}.{SHA-256 of the body}`, hex, in
//! `X-Webhook-Signature`.
//!
//! <https://docs.ripple.com/products/collections/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "ripple-collections",
    title: "Ripple Collections",
    docs: "https://docs.ripple.com/products/collections/",
    // The time is sent once more in a header of its own, which is not signed and not looked at.
    schemes: items![
        hmac(label("x-webhook-signature", ",", "v1"))
            .stamp(label("x-webhook-signature", ",", "t"), MILLISECONDS, 300)
            .over(list![
                TIME,
                lit("."),
                Part::BodyHash { algorithm: Algorithm::Sha256, encoding: Encoding::Hex }
            ])
            .key(KeyForm::Base64)
            .scheme()
    ],
    identity: items![Identity::Digest],
    retry: "Not documented; expect retries.",
    find_secret: "The API answers with signature_verification_key when the webhook is made.",
    notes: "Where the type of an event is, is not known. The scheme was read in one \
         implementation only.",
    sample_type: "unknown",
    sample_object: "",
    ..BLANK
}
.provider();
