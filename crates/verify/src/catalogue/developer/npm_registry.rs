//! npm registry: HMAC-SHA256 over the body, hex after `sha256=`, in `x-npm-signature`.
//!
//! <https://github.com/npm/npm-hook-receiver>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "npm-registry",
    title: "npm registry",
    docs: "https://github.com/npm/npm-hook-receiver",
    experimental: true,
    schemes: items![hmac(in_header("x-npm-signature")).prefix("sha256=").scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event"))],
    object: items![json("/name")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The secret that was given to npm hook add.",
    notes: "The scheme was not read again at npm.",
    sample_type: "package:publish",
    sample_body: r#"{"type":"package","version":"1.0.0"}"#,
    sample_object: "@sample/sample",
    ..BLANK
}
.provider();
