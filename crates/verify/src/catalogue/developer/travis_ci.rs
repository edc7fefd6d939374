//! Travis CI: RSA with SHA-1 over the field `payload` of a form, base64, in `Signature`.
//!
//! <https://docs.travis-ci.com/user/notifications/#verifying-webhook-requests>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "travis-ci",
    title: "Travis CI",
    docs: "https://docs.travis-ci.com/user/notifications/#verifying-webhook-requests",
    schemes: items![
        signed_by(Algorithm::RsaSha1, in_header("signature"))
            .over(list![Part::Form(text("payload"))])
            .scheme()
    ],
    payload: Payload::FormJson("payload"),
    // A build that is started again keeps its id.
    identity: items![
        Identity::Joined(list![json("/id"), json("/state"), json("/finished_at")]),
        Identity::Joined(list![json("/id"), json("/state"), json("/started_at")]),
    ],
    event_type: items![kind(json("/state"))],
    object: items![json("/id")],
    retry: "Not documented; do not count on any.",
    find_secret: "`https://api.travis-ci.com/config` has it in `notifications.webhook.public_key`.",
    notes: "SHA-1 is what Travis CI signs with; Oncebox checks such signatures and makes none, so \
         `oncebox send` cannot play Travis CI.",
    sample_type: "passed",
    sample_body: r#"{"id":1,"number":"1","type":"push","state":"passed","status_message":"Passed",
        "branch":"main","started_at":"2026-01-02T03:03:05Z","finished_at":"2026-01-02T03:04:05Z"}"#,
    sample_object: "1",
    sample_form: true,
    ..BLANK
}
.provider();
