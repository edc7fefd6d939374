//! HubSpot: HMAC-SHA256 over method, URL, body and time, base64, in `X-HubSpot-Signature-v3`.
//!
//! <https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "hubspot",
    title: "HubSpot",
    docs: "https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests",
    schemes: items![
        hmac(in_header("x-hubspot-signature-v3"))
            .base64()
            .stamp(in_header("x-hubspot-request-timestamp"), MILLISECONDS, 300)
            .over(list![Part::Method, Part::Url, BODY, TIME])
            .scheme(),
        // Versions 1 and 2 come under one name, so they are read as lists of one: whichever is
        // right is enough. Both are plain hashes. What follows a body that is lengthened without
        // the secret is no text, so no JSON.
        hmac(in_header("x-hubspot-signature"))
            .algorithm(Algorithm::Sha256)
            .separated(',')
            .over(list![Part::Secret, Part::Method, Part::Url, BODY])
            .scheme(),
        hmac(in_header("x-hubspot-signature"))
            .algorithm(Algorithm::Sha256)
            .separated(',')
            .over(list![Part::Secret, BODY])
            .scheme(),
    ],
    // HubSpot sends version 3 beside the older ones, which sign no time.
    choice: Some(
        const { &strongest_of(items![way("v3", &[0]), way("v2", &[1]), way("v1", &[2])]) },
    ),
    batches: items![batch("")],
    // The id of an event is not unique by itself, HubSpot says.
    identity: items![
        Identity::Joined(list![
            item("/eventId"),
            item("/portalId"),
            item("/subscriptionType"),
            item("/objectId"),
            item("/occurredAt"),
        ]),
        Identity::Joined(list![
            item("/eventId"),
            item("/portalId"),
            item("/subscriptionType"),
            item("/occurredAt"),
        ]),
        Identity::Digest,
    ],
    event_type: items![kind(item("/subscriptionType"))],
    object: items![item("/objectId")],
    version: items![version(item("/occurredAt"), Unit::Milliseconds)],
    volatile: items![text("/attemptNumber")],
    answer: Some(Answer::Status(200)),
    retry: "Up to 10 times over 24 hours; answers must come within 5 seconds.",
    retry_hours: 24,
    recovery: "The webhooks journal (GET /webhooks-journal/journal/2026-03/earliest, latest and \
         next) keeps three days, under subscriptions and a token of its own.",
    find_secret: "Developer account, your app, Auth, Client secret.",
    notes: "One request carries up to 100 events. Version 3 signs the URL, so Oncebox must know the \
         public URL. It is required; versions 1 and 2 sign no time and count only where `scheme` \
         says so.",
    sample_type: "contact.creation",
    sample_body: r#"[{"eventId":1,"subscriptionId":12345,"portalId":62515,"appId":54321,
            "occurredAt":1760000000000,"subscriptionType":"contact.creation","attemptNumber":0,
            "objectId":123,"changeSource":"CRM","changeFlag":"NEW"}]"#,
    sample_object: "123",
    ..BLANK
}
.provider();
