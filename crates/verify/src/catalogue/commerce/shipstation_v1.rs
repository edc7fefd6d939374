//! ShipStation (V1): no signature; a token of ours in the URL.
//!
//! <https://www.shipstation.com/docs/api/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "shipstation-v1",
    title: "ShipStation (V1)",
    docs: "https://www.shipstation.com/docs/api/webhooks/",
    schemes: items![token_at(TokenPlace::Query(text("token")), TokenKind::Plain)],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/resource_type"))],
    object: items![json("/resource_url")],
    retry: "Not documented; expect retries.",
    find_secret: "Choose a long random text and add it to the webhook URL you give to \
         ShipStation: ?token=....",
    notes: "Nothing is signed: check the host of resource_url, then fetch it with your API \
         key.",
    sample_type: "ORDER_NOTIFY",
    sample_object: "https://ssapi.shipstation.com/orders?importBatch=sample",
    ..BLANK
}
.provider();
