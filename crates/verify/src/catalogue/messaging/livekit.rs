//! LiveKit: a token in `Authorization`, signed with HS256, that has the hash of the body.
//!
//! <https://docs.livekit.io/home/server/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "livekit",
    title: "LiveKit",
    docs: "https://docs.livekit.io/home/server/webhooks/",
    schemes: items![
        jwt("authorization", list![JwsAlgorithm::Hs256], JwsKeys::Secret)
            .claims(list![
                Claim::MayBeSetting(text("iss"), text("api_key")),
                Claim::BodyHash(text("sha256"), HashForm::Base64),
                Claim::Expires,
            ])
            .scheme()
    ],
    settings: items![optional("api_key", "The API key that the secret belongs to.")],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/event"))],
    object: items![
        json("/participant/sid"),
        json("/egressInfo/egressId"),
        json("/ingressInfo/ingressId"),
        json("/room/sid"),
    ],
    version: items![version(json("/createdAt"), Unit::Seconds)],
    retry: "Not documented in detail; the server retries a few times with growing pauses.",
    find_secret: "LiveKit Cloud, Settings, Keys: the secret of the key that the webhook uses; of \
         your own server, the secret of `webhook.api_key`.",
    notes: "The secret also opens rooms: give the webhook a key of its own.",
    sample_type: "participant_joined",
    sample_body: r#"{"room":{"sid":"RM_hycBMAjmt6Ub","name":"sample"},
        "participant":{"identity":"ada","state":"ACTIVE"}}"#,
    sample_object: "PA_6oGzWDvYqQEb",
    ..BLANK
}
.provider();
