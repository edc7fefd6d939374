//! ShipEngine: RSA-SHA256 over `{timestamp}.{body}`, base64, in
//! `x-shipengine-rsa-sha256-signature`.
//!
//! <https://www.shipengine.com/docs/tracking/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "shipengine",
    title: "ShipEngine",
    docs: "https://www.shipengine.com/docs/tracking/webhooks/",
    experimental: true,
    // How the time is written, and whether a retry is signed anew, is not known.
    schemes: items![
        signed_by(Algorithm::RsaSha256, in_header("x-shipengine-rsa-sha256-signature"))
            .undated(in_header("x-shipengine-timestamp"), TimeFormat::Nonce)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/resource_type"))],
    object: items![json("/resource_url")],
    retry: "Not confirmed: twice, 30 minutes apart.",
    retry_hours: 1,
    find_secret: "The public key of https://api.shipengine.com/jwks, as JWK or PEM.",
    notes: "The key set is not fetched: list every key of it. The scheme was read in one \
         catalogue only. ShipStation V2 signs alike.",
    sample_type: "API_TRACK",
    sample_body: r#"{"data":{}}"#,
    sample_object: "https://api.shipengine.com/v1/tracking",
    ..BLANK
}
.provider();
