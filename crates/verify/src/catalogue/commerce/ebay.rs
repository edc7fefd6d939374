//! eBay: ECDSA on P-256 with SHA-1 over the body, in base64 JSON in `X-EBAY-SIGNATURE`.
//!
//! <https://developer.ebay.com/api-docs/commerce/notification/overview.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "ebay",
    title: "eBay",
    docs: "https://developer.ebay.com/api-docs/commerce/notification/overview.html",
    schemes: items![Scheme::Special(Special::Ebay)],
    settings: items![optional(
        "verification_token",
        "The token you chose beside the endpoint, for eBay's question whether it is yours.",
    )],
    identity: items![id(json("/notification/notificationId"))],
    event_type: items![kind(json("/metadata/topic"))],
    version: items![version(json("/notification/eventDate"), Unit::Iso8601)],
    volatile: items![
        text("/notification/publishAttemptCount"),
        text("/notification/publishDate"),
    ],
    handshakes: items![
        asks(GET, Wants::Has(query("challenge_code"))).challenge(query("challenge_code")).says(
            Said::Json(list![(
                text("challengeResponse"),
                list![Piece::Sha256WithSettingAndUrl(text("verification_token"))]
            )])
        )
    ],
    answer: Some(Answer::Status(200)),
    retry: "Not documented in detail; each attempt counts up in the body.",
    find_secret: "`getPublicKey` of the Notification API, for the `kid` in the header: its whole \
         answer, or the key in it.",
    notes: "Oncebox does not fetch the key, for that needs an application token; it tries those of \
         the source. The question is answered with a hash of the endpoint, so Oncebox must know \
         the public URL.",
    sample_type: "MARKETPLACE_ACCOUNT_DELETION",
    sample_body: r#"{"metadata":{"schemaVersion":"1.0","deprecated":false},
        "notification":{"publishDate":"2026-01-02T03:04:06.000Z","publishAttemptCount":1,
        "data":{"username":"test_user","userId":"ma8vp1jySJC","eiasToken":"nY+sHZ2PrBmdj6wVnY"}}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
