//! Microsoft Graph: the client state of the subscription in every notification.
//!
//! <https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "microsoft-graph",
    title: "Microsoft Graph change notifications",
    docs: "https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks",
    schemes: items![token_at(TokenPlace::Item(text("/clientState")), TokenKind::Plain)],
    batches: items![batch("/value")],
    // Only rich notifications have an id. An etag changes with every change of its resource.
    identity: items![
        id(item("/id")),
        Identity::Joined(list![
            item("/resourceData/@odata.etag"),
            item("/subscriptionId"),
            item("/resource"),
            item("/changeType"),
        ]),
        Identity::Digest,
    ],
    event_type: items![kind_after("lifecycle.", item("/lifecycleEvent")), kind(item("/changeType"))],
    object: items![item("/resourceData/id"), item("/resource")],
    handshakes: items![
        asks(POST, Wants::Has(query("validationToken")))
            .challenge(query("validationToken"))
            .says(ECHO)
    ],
    retry: "For up to 4 hours with growing pauses; endpoints that take longer than 3 seconds are \
         throttled.",
    retry_hours: 4,
    find_secret: "The `clientState` that you give with each subscription: make up a random one.",
    notes: "The client state proves the sender, not the content, and is kept with each event as a \
         part of it. The tokens of rich notifications are not checked. Subscriptions expire and \
         must be renewed; watch for `lifecycle.` events. A notification without id and etag is \
         known by its content: the same change told twice in the same words is one event.",
    sample_type: "updated",
    sample_body: r##"{"value":[{"subscriptionId":"7f105c7d-2dc5-4530-97cd-4e7ae6534c07",
            "changeType":"updated","tenantId":"84bd8158-6d4d-4958-8b9f-9d6445542f95",
            "resource":"users/sample/messages/sample",
            "subscriptionExpirationDateTime":"2026-03-20T11:00:00Z",
            "resourceData":{"@odata.type":"#Microsoft.Graph.Message"}}]}"##,
    sample_object: "AAMkADsample",
    ..BLANK
}
.provider();
