//! Vonage: a token in `Authorization: Bearer`, signed with HS256, that has the hash of the body.
//!
//! <https://developer.vonage.com/en/getting-started/concepts/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "vonage",
    title: "Vonage (signed webhooks)",
    docs: "https://developer.vonage.com/en/getting-started/concepts/webhooks",
    schemes: items![
        jwt("authorization", list![JwsAlgorithm::Hs256], JwsKeys::Secret)
            .word("Bearer")
            .claims(list![
                Claim::MayBeSetting(text("api_key"), text("api_key")),
                Claim::BodyHash(text("payload_hash"), HashForm::Hex),
                Claim::IssuedWithin(300),
            ])
            .scheme()
    ],
    settings: items![optional("api_key", "The API key of the account, which tokens must name.")],
    identity: items![
        Identity::Joined(list![json("/message_uuid"), json("/status")]),
        id(json("/message_uuid")),
        Identity::Joined(list![json("/uuid"), json("/status")]),
        Identity::Digest,
    ],
    event_type: items![kind(json("/status")), kind(json("/message_type")), kind(json("/type"))],
    object: items![json("/message_uuid"), json("/uuid"), json("/conversation_uuid")],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    retry: "With growing pauses for up to 24 hours.",
    retry_hours: 24,
    find_secret: "Dashboard, Settings, API settings: the signature secret.",
    notes: "For the Messages, Voice and Dispatch APIs over POST. The SMS API signs its parameters \
         in another way, and webhooks over GET have no body to hash: neither is covered. The \
         window of 300 s for `iat` is ours; the documentation names none.",
    sample_type: "delivered",
    sample_body: r#"{"to":"447700900000","from":"447700900001","channel":"sms",
        "status":"delivered","timestamp":"2026-01-02T03:04:05.000Z"}"#,
    sample_object: "aaaaaaaa-bbbb-cccc-dddd-0123456789ab",
    ..BLANK
}
.provider();
