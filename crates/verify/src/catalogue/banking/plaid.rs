//! Plaid: a token in `Plaid-Verification`, signed with ES256, that has the hash of the body.
//!
//! <https://plaid.com/docs/api/webhooks/webhook-verification/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "plaid",
    title: "Plaid",
    docs: "https://plaid.com/docs/api/webhooks/webhook-verification/",
    schemes: items![
        jwt("plaid-verification", list![JwsAlgorithm::Es256], JwsKeys::Secret)
            .claims(list![
                Claim::BodyHash(text("request_body_sha256"), HashForm::Hex),
                Claim::IssuedWithin(300),
            ])
            .scheme()
    ],
    settings: items![optional(
        "jwk",
        "Plaid's key: what POST /webhook_verification_key/get has under `key`; several as an array."
    )],
    // No webhook has an id, and those that say there is news are the same bytes every time.
    identity: items![Identity::Each],
    event_type: items![kind_with(json("/webhook_type"), json("/webhook_code"))],
    object: items![
        json("/item_id"),
        json("/link_session_id"),
        json("/transfer_id"),
        json("/asset_report_id"),
        json("/identity_verification_id"),
    ],
    retry: "For up to 24 hours, after 30 seconds first and then with growing pauses; it stops when \
         more than nine in ten are refused.",
    retry_hours: 24,
    find_secret: "There is none: ask POST /webhook_verification_key/get for the key that the \
         `key_id` (`kid`) of a webhook's token names, and set it as `jwk`.",
    notes: "Plaid serves its keys only to your client id and secret, so they are not fetched here: \
         add the new key to `jwk` when Plaid rotates (unknown_key says so). Webhooks carry no id, \
         and news of an item reads the same every time, so every request is an event, retries \
         too: consume them as a hint to sync by cursor, not as a count. Plaid waits 10 s.",
    sample_type: "TRANSACTIONS.SYNC_UPDATES_AVAILABLE",
    sample_body: r#"{"environment":"sandbox","initial_update_complete":true,
        "historical_update_complete":true}"#,
    sample_object: "4PAGzDxkXqFv8jrXmRmNSgjd3Ae3g8cvQ7pGa",
    ..BLANK
}
.provider();
