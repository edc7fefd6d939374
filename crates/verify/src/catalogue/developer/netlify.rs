//! Netlify: a token in `X-Webhook-Signature`, signed with HS256, that has the hash of the body.
//!
//! <https://docs.netlify.com/deploy/deploy-notifications/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "netlify",
    title: "Netlify",
    docs: "https://docs.netlify.com/deploy/deploy-notifications/",
    schemes: items![
        jwt("x-webhook-signature", list![JwsAlgorithm::Hs256], JwsKeys::Secret)
            .claims(list![
                Claim::Is(text("iss"), text("netlify")),
                Claim::BodyHash(text("sha256"), HashForm::Hex),
            ])
            .scheme()
    ],
    // One deploy comes with every state it goes through, and one state under several types.
    identity: items![
        Identity::JoinedDigest(list![header("x-netlify-event")]),
        Identity::Digest,
    ],
    event_type: items![kind(header("x-netlify-event"))],
    object: items![json("/id"), json("/site_id")],
    version: items![version(json("/updated_at"), Unit::Iso8601)],
    twins: hold("The same type and body is a duplicate; only a copy without its type is a twin."),
    types_share_body: Some(
        "The type is a header and the body is the bare deploy or form: deploy_created and \
         deploy_building may have one body.",
    ),
    retry: "Not documented in detail; a few times, and six failures disable the notification.",
    find_secret: "Project configuration, Notifications, HTTP POST request: the JWS secret token \
         that you choose there.",
    notes: "The event's type is in X-Netlify-Event, which is not signed; the state of the deploy \
         is in the body, which is.",
    sample_type: "deploy_created",
    sample_headers: items![(text("x-netlify-event"), text("deploy_created"))],
    sample_body: r#"{"site_id":"fa4dd95a-0000-4000-8000-5ebc34bf4fea","state":"ready",
        "name":"sample","branch":"main","context":"production"}"#,
    sample_object: "5ebc34bf4fea0b01f02efa3a",
    ..BLANK
}
.provider();
