//! Google Cloud Pub/Sub: an OpenID token of Google in `Authorization`, signed with RS256.
//!
//! <https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "google-pubsub",
    title: "Google Cloud Pub/Sub push",
    docs: "https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions",
    // Anybody can let Google make a token for any audience, so the account is checked too.
    schemes: items![
        jwt(
            "authorization",
            list![JwsAlgorithm::Rs256],
            JwsKeys::Jwks(list![text("https://www.googleapis.com/oauth2/v3/certs")])
        )
        .word("Bearer")
        .claims(list![
            Claim::Is(text("iss"), text("https://accounts.google.com")),
            Claim::IsSetting(text("aud"), text("audience")),
            Claim::IsTrue(text("email_verified")),
            Claim::IsSetting(text("email"), text("service_account")),
            Claim::Expires,
        ])
        .scheme()
    ],
    settings: items![
        needed("audience", "The audience of the push subscription; its push URL if none is set."),
        needed("service_account", "The e-mail address of the account that the subscription uses."),
    ],
    identity: items![id(json("/message/messageId"))],
    event_type: items![
        kind(json("/message/attributes/eventType")),
        kind(json("/message/attributes/ce-type")),
        kind(json("/subscription")),
    ],
    object: items![json("/message/orderingKey"), json("/message/attributes/objectId")],
    version: items![version(json("/message/publishTime"), Unit::Iso8601)],
    volatile: items![text("/deliveryAttempt")],
    retry: "After 10 to 600 seconds, growing, until it is acknowledged or the retention of the \
         subscription (7 days) ends.",
    retry_hours: 744,
    find_secret: "There is none: Google's keys are fetched. Turn on authentication for the push \
         subscription, and copy its audience and service account.",
    notes: "The token proves who sent a request, not what was sent: keep the URL on HTTPS. \
         Subscriptions with payload unwrapping send the data alone and are not covered.",
    sample_type: "OBJECT_FINALIZE",
    sample_body: r#"{"message":{"data":"SGVsbG8gQ2xvdWQgUHViL1N1YiE=","attributes":{}},
        "subscription":"projects/sample/subscriptions/oncebox"}"#,
    sample_object: "customer-1",
    ..BLANK
}
.provider();
