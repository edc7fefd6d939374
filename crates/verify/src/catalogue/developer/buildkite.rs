//! Buildkite: HMAC-SHA256 over `{timestamp}.{body}`, hex, or a static token.
//!
//! <https://buildkite.com/docs/apis/webhooks/pipelines>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "buildkite",
    title: "Buildkite",
    docs: "https://buildkite.com/docs/apis/webhooks/pipelines",
    // Whether retries are signed again is not known, so any age passes.
    schemes: items![
        hmac(label("x-buildkite-signature", ",", "signature"))
            .undated(label("x-buildkite-signature", ",", "timestamp"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme(),
        token("x-buildkite-token")
    ],
    choice: Some(const { &learned_of(items![way("signature", &[0]), way("token", &[1])]) }),
    // Build and state do not tell two jobs apart, nor two runs of one.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event")), kind(header("x-buildkite-event"))],
    object: items![json("/job/id"), json("/build/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Organization settings, Notification services, your webhook, Token.",
    notes: "Choose the signature: the plain token proves who sent a request, not what was sent.",
    sample_type: "build.finished",
    sample_body: r#"{"build":{"id":"sample","number":1,"state":"passed"},
        "job":{"state":"passed"},"pipeline":{"slug":"sample"}}"#,
    sample_object: "01890d4a-6c3f-4e1b-9c55-3f2a6b7c8d9e",
    ..BLANK
}
.provider();
