//! LinkedIn: HMAC-SHA256 over `hmacsha256={body}`, hex, in `X-LI-Signature`.
//!
//! <https://learn.microsoft.com/en-us/linkedin/shared/api-guide/webhook-validation>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "linkedin",
    title: "LinkedIn",
    docs: "https://learn.microsoft.com/en-us/linkedin/shared/api-guide/webhook-validation",
    schemes: items![
        hmac(in_header("x-li-signature")).over(list![lit("hmacsha256="), BODY]).scheme()
    ],
    batches: items![batch("/notifications")],
    // Without a type nothing is an event: the answers to challenges are made with the same secret,
    // and must not pass for signatures of events.
    identity: items![id(item("/notificationId")), Identity::JoinedDigest(list![json("/type")])],
    event_type: items![kind_with(json("/type"), item("/action")), kind(json("/type"))],
    handshakes: items![
        asks(GET, Wants::Has(query("challengeCode"))).challenge(query("challengeCode")).says(
            Said::Json(list![
                (text("challengeCode"), list![Piece::Challenge]),
                (
                    text("challengeResponse"),
                    list![Piece::Mac(Algorithm::HmacSha256, Encoding::Hex)]
                )
            ])
        )
    ],
    retry: "Every five minutes for up to eight hours; three failed challenges block the webhook.",
    retry_hours: 8,
    find_secret: "Developer portal, your app, Auth, Primary client secret.",
    notes: "LinkedIn asks again every two hours and waits 3 s for the answer. The scheme was \
         read in one catalogue only, not at LinkedIn.",
    sample_type: "ORGANIZATION_SOCIAL_ACTION_NOTIFICATIONS.LIKE",
    sample_body: r#"{"notifications":[{"organizationalEntity":"urn:li:organization:1",
        "sourcePost":"urn:li:share:1"}]}"#,
    sample_object: "",
    ..BLANK
}
.provider();
