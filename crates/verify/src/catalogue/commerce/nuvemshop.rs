//! Nuvemshop (Tiendanube): HMAC-SHA256 over the body, hex, in `x-linkedstore-hmac-sha256`.
//!
//! <https://tiendanube.github.io/api-documentation/resources/webhook>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "nuvemshop",
    title: "Nuvemshop (Tiendanube)",
    docs: "https://tiendanube.github.io/api-documentation/resources/webhook",
    schemes: items![hmac(in_header("x-linkedstore-hmac-sha256")).scheme()],
    // The body is shop, type and object only: the next update of a product is the same bytes, so
    // nothing tells it from a retry.
    identity: items![Identity::Each],
    event_type: items![kind(json("/event"))],
    object: items![json("/id")],
    retry: "Not confirmed: up to 18 tries over 48 hours.",
    retry_hours: 48,
    find_secret: "Partner portal, your app: the client secret.",
    notes: "A retry is an event of its own: fetch the object before acting. Nuvemshop waits 3 \
         s.",
    sample_type: "product/updated",
    sample_body: r#"{"store_id":123}"#,
    sample_object: "456",
    ..BLANK
}
.provider();
