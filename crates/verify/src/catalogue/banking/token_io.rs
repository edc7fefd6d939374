//! Token.io: Ed25519 over the body, base64 for URLs, in `token-signature`.
//!
//! <https://developer.token.io/token_rest_api_doc/content/webhooks.htm>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "token-io",
    title: "Token.io",
    docs: "https://developer.token.io/token_rest_api_doc/content/webhooks.htm",
    schemes: items![
        signed_by(Algorithm::Ed25519, in_header("token-signature"))
            .encoding(Encoding::Base64Url)
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(header("token-event"))],
    retry: "After 10, 30, 70 and 150 minutes and so on, for up to 72 hours.",
    retry_hours: 72,
    find_secret: "Dashboard, Settings, Webhooks: Token.io's public key.",
    notes: "The type of an event is in a header that is not signed. Events are told apart by their \
         bodies.",
    sample_type: "TRANSFER_STATUS_CHANGED",
    sample_body: r#"{"eventId":"e:1","transferId":"t:1","status":"SUCCESS"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
