//! Fireblocks: a detached JWS (RS512) over the body in `Fireblocks-Webhook-Signature`.
//!
//! <https://developers.fireblocks.com/reference/validating-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "fireblocks",
    title: "Fireblocks",
    docs: "https://developers.fireblocks.com/reference/validating-webhooks",
    schemes: items![
        jwt(
            "fireblocks-webhook-signature",
            list![JwsAlgorithm::Rs512],
            JwsKeys::Jwks(list![text("https://keys.fireblocks.io/.well-known/jwks.json")])
        )
        .over(JwsPayload::Detached(list![BODY]))
        .scheme()
    ],
    settings: items![optional(
        "jwks_url",
        "The key set of another region: https://eu-keys.fireblocks.io/.well-known/jwks.json, \
         eu2-keys or sandbox-keys."
    )],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/eventType"))],
    object: items![json("/resourceId"), json("/data/id")],
    version: items![version(json("/createdAt"), Unit::Milliseconds)],
    retry: "After 10 s, 30 s, 2, 5, 15 and 30 minutes, 1, 2 and 4 hours.",
    retry_hours: 9,
    find_secret: "There is none: the keys are fetched from Fireblocks. Outside the US set \
         `jwks_url`.",
    notes: "Webhooks version 2. The older Fireblocks-Signature, made with one key for everybody, \
         is not read; Fireblocks sends both for a while. Whether `/id` stays the same on a retry \
         is not documented.",
    sample_type: "transaction.created",
    sample_body: r#"{"workspaceId":"d0fc6ab6-fb7a-5dd0-9d1e-0ba7a5b4bc9b",
        "data":{"assetId":"ETH","amount":0.5,"status":"SUBMITTED"}}"#,
    sample_object: "a1c0b1f4-5d5e-4f1a-8a0f-6a6a2c7e2b2d",
    ..BLANK
}
.provider();
