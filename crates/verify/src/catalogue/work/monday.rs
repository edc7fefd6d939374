//! monday.com: a token in `Authorization`, signed with HS256.
//!
//! <https://developer.monday.com/apps/docs/integration-authorization>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "monday",
    title: "monday.com",
    docs: "https://developer.monday.com/apps/docs/integration-authorization",
    schemes: items![
        jwt("authorization", list![JwsAlgorithm::Hs256], JwsKeys::Secret)
            .claims(list![
                Claim::MayBeSetting(text("aud"), text("audience")),
                Claim::Expires,
            ])
            .scheme()
    ],
    settings: items![optional("audience", "The URL of the webhook, to which tokens must be made.")],
    identity: items![id(json("/event/triggerUuid"))],
    event_type: items![kind(json("/event/type"))],
    object: items![json("/event/pulseId"), json("/event/boardId")],
    version: items![version(json("/event/triggerTime"), Unit::Iso8601)],
    handshakes: items![
        asks(POST, Wants::Has(json("/challenge")))
            .challenge(json("/challenge"))
            .says(Said::Json(list![(text("challenge"), list![Piece::Challenge])]))
    ],
    retry: "Once a minute for 30 minutes.",
    retry_hours: 1,
    find_secret: "Developer center, your app, Basic information, Signing secret.",
    notes: "Only webhooks that an app made with its own token are signed; those made on a board \
         are not, and are refused. The token proves who sent a request, not what was sent. \
         Whether the triggerUuid stays the same on a retry is not documented.",
    sample_type: "update_column_value",
    sample_body: r#"{"event":{"app":"monday","userId":9603417,"columnId":"status",
        "columnType":"color","value":{"label":{"text":"Done"}}}}"#,
    sample_object: "1771812716",
    ..BLANK
}
.provider();
