//! Deepgram: the id of the API key, in `dg-token`.
//!
//! <https://developers.deepgram.com/docs/callback>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "deepgram",
    title: "Deepgram",
    docs: "https://developers.deepgram.com/docs/callback",
    schemes: items![token("dg-token")],
    identity: items![Identity::Digest],
    object: items![json("/metadata/request_id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The id, not the value, of the API key that asks for the transcript.",
    notes: "The token proves little: ids of keys are no secrets, and it covers nothing of what \
         was sent. Add a path that nobody can guess to the callback, and read the transcript \
         with care.",
    sample_type: "unknown",
    sample_body: r#"{"metadata":{"channels":1},"results":{"channels":[]}}"#,
    sample_object: "2479c8c8-8185-40ac-9ac6-f0874419f793",
    ..BLANK
}
.provider();
