//! FusionAuth: a token in `X-FusionAuth-Signature-JWT` that has the hash of the body.
//!
//! <https://fusionauth.io/docs/extend/events-and-webhooks/signing>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "fusionauth",
    title: "FusionAuth",
    docs: "https://fusionauth.io/docs/extend/events-and-webhooks/signing",
    // Which algorithm is right is for the key to say: a secret takes only HS*, a key of a pair
    // only its own.
    schemes: items![
        jwt(
            "x-fusionauth-signature-jwt",
            list![
                JwsAlgorithm::Hs256,
                JwsAlgorithm::Hs384,
                JwsAlgorithm::Hs512,
                JwsAlgorithm::Rs256,
                JwsAlgorithm::Rs384,
                JwsAlgorithm::Rs512,
                JwsAlgorithm::Es256,
                JwsAlgorithm::Es384,
                JwsAlgorithm::Es512,
                JwsAlgorithm::EdDsa,
            ],
            JwsKeys::JwksSetting(text("jwks_url"))
        )
        .claims(list![Claim::BodyHash(text("request_body_sha256"), HashForm::Base64)])
        .scheme()
    ],
    settings: items![
        optional("jwks_url", "The key set of your own: https://<host>/.well-known/jwks.json"),
        optional("public_key", "The public key in PEM, if it shall not be fetched."),
    ],
    identity: items![id(json("/event/id"))],
    event_type: items![kind(json("/event/type"))],
    object: items![json("/event/user/id"), json("/event/applicationId")],
    version: items![version(json("/event/createInstant"), Unit::Milliseconds)],
    retry: "Not documented; an event in a transaction is sent once, and a failure undoes the \
         user's action.",
    find_secret: "Settings, Webhooks, your webhook, Security: the signing key. An HMAC key is the \
         secret here; for any other set `jwks_url`.",
    notes: "FusionAuth waits a second to connect and two for the answer, both by default. The \
         token is not dated.",
    sample_type: "user.create",
    sample_body: r#"{"event":{"tenantId":"e872a880-b14f-6d62-c312-cb40f22af465",
        "user":{"email":"ada@example.com","active":true}}}"#,
    sample_object: "00000000-0000-0001-0000-000000000000",
    ..BLANK
}
.provider();
