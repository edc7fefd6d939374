//! Azure Event Grid: a secret in the URL, or an Entra ID token in `Authorization` (RS256).
//!
//! <https://learn.microsoft.com/en-us/azure/event-grid/security-authentication>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "azure-event-grid",
    title: "Azure Event Grid",
    docs: "https://learn.microsoft.com/en-us/azure/event-grid/security-authentication",
    // Entra gives tokens to everybody, so nothing less than issuer, audience and application
    // tells ours from theirs.
    schemes: items![
        token_at(TokenPlace::Query(text("token")), TokenKind::Plain),
        jwt(
            "authorization",
            list![JwsAlgorithm::Rs256],
            JwsKeys::Jwks(list![text(
                "https://login.microsoftonline.com/common/discovery/v2.0/keys"
            )])
        )
        .word("Bearer")
        .claims(list![
            Claim::IsSetting(text("iss"), text("issuer")),
            Claim::IsSetting(text("aud"), text("audience")),
            Claim::AnyIsSetting(list![text("azp"), text("appid")], text("app_id")),
            Claim::Expires,
        ])
        .scheme(),
    ],
    choice: Some(const { &learned_of(items![way("entra", &[1]), way("token", &[0])]) }),
    settings: items![
        optional(
            "issuer",
            "For Entra ID: https://login.microsoftonline.com/<tenant>/v2.0, or \
             https://sts.windows.net/<tenant>/ for tokens of version 1."
        ),
        optional("audience", "For Entra ID: the id or URI of the application of your webhook."),
        optional(
            "app_id",
            "For Entra ID: the application that gets the tokens, which is \
             4962773b-9cdb-44cf-a8bf-237846a00ab7 for Event Grid in the public cloud."
        ),
    ],
    batches: items![batch("")],
    // Event Grid's own schema is an array; CloudEvents come alone.
    identity: items![
        id(item("/id")),
        Identity::Joined(list![json("/source"), json("/id")]),
        Identity::Joined(list![header("ce-source"), header("ce-id")]),
    ],
    event_type: items![kind(item("/eventType")), kind(item("/type")), kind(json("/type"))],
    object: items![item("/subject"), json("/subject")],
    version: items![
        version(item("/eventTime"), Unit::Iso8601),
        version(item("/time"), Unit::Iso8601),
        version(json("/time"), Unit::Iso8601),
    ],
    handshakes: items![
        // It comes to the same URL, or with a token, like every event.
        asks(POST, Wants::Is(header("aeg-event-type"), text("SubscriptionValidation")))
            .signed()
            .challenge(json("/0/data/validationCode"))
            .says(Said::Json(list![(text("validationResponse"), list![Piece::Challenge])])),
        asks(OPTIONS, Wants::Has(header("webhook-request-origin")))
            .challenge(header("webhook-request-origin"))
            .headers(list![(text("WebHook-Allowed-Origin"), Piece::Challenge)]),
    ],
    answer: Some(Answer::Status(200)),
    retry: "After 10 s, 30 s, 1, 5, 10 and 30 minutes, 1, 3, 6 and 12 hours, then every 12 hours: \
         30 times or for 24 hours. 400, 401 and 413 go to the dead letters at once.",
    retry_hours: 24,
    find_secret: "Choose a random text and give the event subscription a URL that ends in \
         `?token=` and it; or protect the webhook with Entra ID and set `issuer`, `audience` and \
         `app_id`.",
    notes: "Neither way covers the body, so keep the URL on HTTPS and out of logs. Event Grid \
         waits 30 s for 200 to 204.",
    sample_type: "Microsoft.Storage.BlobCreated",
    sample_body: r#"[{"topic":"/subscriptions/sample","data":{"api":"PutBlob"},
        "dataVersion":"1","metadataVersion":"1"}]"#,
    sample_object: "/blobServices/default/containers/sample/blobs/a.txt",
    ..BLANK
}
.provider();
