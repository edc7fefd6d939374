//! Gong: a token in `Authorization`, signed with RS256, for a URL and a body.
//!
//! <https://help.gong.io/docs/create-a-webhook-rule>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "gong",
    title: "Gong",
    docs: "https://help.gong.io/docs/create-a-webhook-rule",
    schemes: items![
        jwt("authorization", list![JwsAlgorithm::Rs256], JwsKeys::Secret)
            .claims(list![
                Claim::IsUrl(text("webhook_url")),
                Claim::BodyHash(text("body_sha256"), HashForm::Hex),
            ])
            .scheme()
    ],
    // A call is sent again when another rule fires, so its id alone is no event.
    identity: items![Identity::Digest],
    event_type: items![kind_after("call.", json("/callData/metaData/direction"))],
    object: items![json("/callData/metaData/id")],
    version: items![version(json("/callData/metaData/started"), Unit::Iso8601)],
    retry: "Not documented; do not count on more than one attempt.",
    find_secret: "Admin center, Settings, Ecosystem, Automation rules, your rule, Signed JWT \
         header, Show public key.",
    notes: "The URL is signed: set `public_url` behind a proxy, and give Gong a URL without a \
         query. The token is not dated unless it has an `exp`.",
    sample_type: "call.Conference",
    sample_body: r#"{"isTest":false,"callData":{"metaData":{"title":"A sample",
        "direction":"Conference","started":"2026-01-02T03:04:05Z"}}}"#,
    sample_object: "7782342274025937895",
    ..BLANK
}
.provider();
