//! SharePoint: the client state of the subscription in every notification.
//!
//! <https://learn.microsoft.com/en-us/sharepoint/dev/apis/webhooks/overview-sharepoint-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "microsoft-sharepoint",
    title: "SharePoint lists",
    docs: "https://learn.microsoft.com/en-us/sharepoint/dev/apis/webhooks/overview-sharepoint-webhooks",
    schemes: items![token_at(TokenPlace::Item(text("/clientState")), TokenKind::Plain)],
    batches: items![batch("/value")],
    // Notices of one list are the same, byte for byte: a digest would lose all but the first.
    identity: items![Identity::Each],
    object: items![item("/resource")],
    handshakes: items![
        asks(POST, Wants::Has(query("validationtoken")))
            .challenge(query("validationtoken"))
            .says(ECHO)
    ],
    answer: Some(Answer::Status(200)),
    retry: "Five times, 5 minutes apart.",
    retry_hours: 1,
    find_secret: "The `clientState` that you give with each subscription: make up a random one.",
    notes: "The client state proves the sender, not the content, and is kept with each event as a \
         part of it. A notification says that a list changed and no more, so that \
         a retry cannot be told from the next change: each becomes an event of its own. Ask \
         GetChanges with your last token.",
    sample_type: "unknown",
    sample_body: r#"{"value":[{"subscriptionId":"91779246-afe9-4525-b122-6c199ae89211",
            "expirationDateTime":"2026-04-30T17:27:00.0000000Z","resource":"sample",
            "tenantId":"00000000-0000-0000-0000-000000000000","siteUrl":"/sites/sample",
            "webId":"dbc5a806-e4d4-46e5-951c-6344d70b62fa"}]}"#,
    sample_object: "b9f6f714-9df8-470b-b22e-653855e1c181",
    ..BLANK
}
.provider();
