//! Vercel log drains: HMAC-SHA1 over the body, hex, in `x-vercel-signature`.
//!
//! <https://vercel.com/docs/drains/security>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "vercel-log-drains",
    title: "Vercel log drains",
    docs: "https://vercel.com/docs/drains/security",
    schemes: items![hmac(in_header("x-vercel-signature")).sha1().scheme()],
    settings: items![optional(
        "verify",
        "The value of x-vercel-verify that Vercel shows when the drain is made."
    )],
    batches: items![batch("")],
    identity: items![Identity::Digest],
    event_type: items![kind(item("/source"))],
    object: items![item("/deploymentId")],
    version: items![version(item("/timestamp"), Unit::Milliseconds)],
    // The request that verifies the URL is not signed; only the header of the answer counts.
    handshakes: items![
        asks(GET, Wants::Method)
            .headers(list![(text("x-vercel-verify"), Piece::Setting(text("verify")))]),
        asks(POST, Wants::EmptyBody)
            .headers(list![(text("x-vercel-verify"), Piece::Setting(text("verify")))])
    ],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Team settings, Drains, your drain, Signature secret.",
    notes: "Choose the JSON format, not NDJSON. The URL is verified by a request without \
         signature, which is answered if it is a GET or has no body. The scheme was read in \
         one catalogue only.",
    sample_type: "lambda",
    sample_body: r#"[{"projectId":"prj_sample","level":"info","message":"hello"}]"#,
    sample_object: "dpl_sample",
    ..BLANK
}
.provider();
