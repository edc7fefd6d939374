//! OpenNode: HMAC-SHA256 over the id of the charge, hex, in the form field `hashed_order`.
//!
//! <https://developers.opennode.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "opennode",
    title: "OpenNode",
    docs: "https://developers.opennode.com/docs/webhooks",
    schemes: items![
        hmac(Place::Form(text("hashed_order"))).over(list![Part::Form(text("id"))]).scheme()
    ],
    identity: items![Identity::Joined(list![form("id"), form("status")])],
    event_type: items![kind(form("status"))],
    object: items![form("id")],
    // The signature covers the id of a charge alone, so it stands for the event.
    guard: Guard::Signed,
    types_share_body: Some(
        "OpenNode signs only the id of a charge, so all its statuses have one signature.",
    ),
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "Dashboard, Developers, API keys: the key that makes your charges.",
    notes: "Only the id of the charge is signed, not its status: fetch the charge before \
         acting.",
    sample_type: "paid",
    sample_body: "description=sample&price=100",
    sample_object: "65f1a3e0",
    sample_form: true,
    ..BLANK
}
.provider();
