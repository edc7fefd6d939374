//! Bunny Stream: HMAC-SHA256 over the body, hex, in `X-BunnyStream-Signature`.
//!
//! <https://docs.bunny.net/docs/stream-webhook>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "bunny-stream",
    title: "Bunny Stream",
    docs: "https://docs.bunny.net/docs/stream-webhook",
    schemes: items![hmac(in_header("x-bunnystream-signature")).scheme()],
    // A notice has no id and no time, and each resolution that is done reads the same.
    identity: items![Identity::Each],
    event_type: items![kind_after("status.", json("/Status"))],
    object: items![json("/VideoGuid")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Stream, your library, API, Read-only API key.",
    notes: "A retry is an event of its own: read the video again by its id.",
    sample_type: "status.3",
    sample_body: r#"{"VideoLibraryId":133}"#,
    sample_object: "657bb740-a71b-4529-a012-528021c31a92",
    ..BLANK
}
.provider();
