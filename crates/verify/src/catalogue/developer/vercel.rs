//! Vercel: HMAC-SHA1 over the body, hex, in `x-vercel-signature`.
//!
//! <https://vercel.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "vercel",
    title: "Vercel",
    docs: "https://vercel.com/docs/webhooks",
    schemes: items![hmac(in_header("x-vercel-signature")).sha1().scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/payload/deployment/id"), json("/payload/project/id")],
    version: items![version(json("/createdAt"), Unit::Milliseconds)],
    retry: "Not confirmed; retries with growing pauses for up to a day are spoken of.",
    retry_hours: 24,
    find_secret: "Team settings, Webhooks: the secret shown once; for integrations, the client \
         secret.",
    notes: "SHA-1, not SHA-256.",
    sample_type: "deployment.succeeded",
    sample_body: r#"{"region":"fra1","payload":{"target":"production",
        "team":{"id":"team_sample"},"user":{"id":"user_sample"},
        "project":{"id":"prj_sample"},"deployment":{"name":"sample",
        "url":"sample.vercel.app","meta":{}}}}"#,
    sample_object: "dpl_sample",
    ..BLANK
}
.provider();
