//! PlanetScale: HMAC-SHA256 over the body, hex, in `X-PlanetScale-Signature`.
//!
//! <https://planetscale.com/docs/api/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "planetscale",
    title: "PlanetScale",
    docs: "https://planetscale.com/docs/api/webhooks",
    schemes: items![hmac(in_header("x-planetscale-signature")).scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event"))],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Database settings, Webhooks, your webhook, Secret.",
    notes: "The scheme was read in one catalogue only, not at PlanetScale.",
    sample_type: "branch.ready",
    sample_body: r#"{"timestamp":1760000000,"organization":"sample","database":"sample",
        "resource":{}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
