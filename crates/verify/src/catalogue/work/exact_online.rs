//! Exact Online: HMAC-SHA256 over the content as it is written, upper-case hex, in the body.
//!
//! <https://support.exactonline.com/community/s/knowledge-base#All-All-DNO-Content-webhooksc>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "exact-online",
    title: "Exact Online",
    docs: "https://support.exactonline.com/community/s/knowledge-base#All-All-DNO-Content-webhooksc",
    schemes: items![
        hmac(Place::Json(text("/HashCode")))
            .encoding(Encoding::HexUpper)
            .over(list![Part::JsonRaw(text("/Content"))])
            .scheme()
    ],
    identity: items![
        Identity::Joined(list![
            json("/Content/Topic"),
            json("/Content/Action"),
            json("/Content/Key"),
            json("/Content/EventCreatedOn"),
        ]),
        Identity::Digest,
    ],
    event_type: items![kind_with(json("/Content/Topic"), json("/Content/Action"))],
    object: items![json("/Content/Key")],
    version: items![version(json("/Content/EventCreatedOn"), Unit::Iso8601)],
    // What stands around the content is not signed.
    guard: Guard::Signed,
    // The check of a new subscription.
    handshakes: items![asks(POST, Wants::EmptyBody)],
    answer: Some(Answer::Status(200)),
    retry: "Not documented.",
    find_secret: "App Center, your app, Webhook secret.",
    notes: "There is no id: an event is known by topic, action, key and time.",
    sample_type: "Accounts.Update",
    sample_body: r#"{"Content":{"Topic":"Accounts","ClientId":"sample","Division":1,
            "Action":"Update","Key":"sample","ExactOnlineEndpoint":
            "https://start.exactonline.nl/api/v1/1/crm/Accounts","EventCreatedOn":""}}"#,
    sample_object: "8b1b1d6e-0000-4000-8000-000000000000",
    ..BLANK
}
.provider();
