//! Auth0: a static value in `Authorization`.
//!
//! <https://auth0.com/docs/customize/log-streams/custom-log-streams>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "auth0",
    title: "Auth0",
    docs: "https://auth0.com/docs/customize/log-streams/custom-log-streams",
    schemes: items![token("authorization")],
    // Log streams send arrays; event streams send one object.
    batches: items![batch("")],
    identity: items![id(item("/log_id")), id(json("/log_id")), id(json("/id"))],
    event_type: items![kind(item("/data/type")), kind(json("/type")), kind(json("/data/type"))],
    object: items![item("/data/user_id"), json("/data/user_id")],
    version: items![
        version(item("/data/date"), Unit::Iso8601),
        version(json("/data/date"), Unit::Iso8601),
        version(json("/time"), Unit::Iso8601)
    ],
    retry: "Not confirmed: some; then the stream is paused.",
    find_secret: "Monitoring, Streams, your stream, Authorization token: exactly the text you \
         set there.",
    notes: "The body is not signed. Choose JSON array or JSON object as the format: lines of \
         JSON are not read.",
    sample_type: "ss",
    sample_body: r#"[{"data":{"client_name":"Sample","strategy":"auth0"}}]"#,
    sample_object: "auth0|sample",
    ..BLANK
}
.provider();
