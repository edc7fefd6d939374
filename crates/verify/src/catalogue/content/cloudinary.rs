//! Cloudinary: a plain hash over `{body}{timestamp}{secret}`, hex, in `X-Cld-Signature`.
//!
//! <https://cloudinary.com/documentation/notification_signatures>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "cloudinary",
    title: "Cloudinary",
    docs: "https://cloudinary.com/documentation/notification_signatures",
    // SHA-1 unless the account is set to SHA-256; both are tried, for their length differs. Two
    // hours is what the SDK allows.
    schemes: items![hashed(Algorithm::Sha1), hashed(Algorithm::Sha256)],
    // One request may lead to several notices, and one version may be told of twice.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/notification_type"))],
    object: items![json("/public_id"), json("/asset_id")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, API keys, API secret.",
    notes: "Every notice is signed with the secret of the account, which also calls its API: \
         keep it well.",
    sample_type: "upload",
    sample_body: r#"{"request_id":"sample","asset_id":"sample","version":1760000000,
        "format":"jpg"}"#,
    sample_object: "sample",
    ..BLANK
}
.provider();

const fn hashed(algorithm: Algorithm) -> Scheme {
    hmac(in_header("x-cld-signature"))
        .algorithm(algorithm)
        .separated(',')
        .stamp(in_header("x-cld-timestamp"), SECONDS, 7200)
        .over(list![BODY, TIME, Part::Secret])
        .scheme()
}
