//! Firecrawl: HMAC-SHA256 over the body, hex after `sha256=`, in `X-Firecrawl-Signature`.
//!
//! <https://docs.firecrawl.dev/webhooks/security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "firecrawl",
    title: "Firecrawl",
    docs: "https://docs.firecrawl.dev/webhooks/security",
    schemes: items![hmac(in_header("x-firecrawl-signature")).prefix("sha256=").scheme()],
    // What `/webhookId` names, and whether retries keep it, is not known.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Account settings, Advanced, Webhook secret.",
    notes: "The scheme was read in one catalogue only, not at Firecrawl.",
    sample_type: "crawl.completed",
    sample_body: r#"{"success":true,"data":[]}"#,
    sample_object: "550e8400-e29b-41d4-a716-446655440000",
    ..BLANK
}
.provider();
