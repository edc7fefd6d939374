//! CircleCI: HMAC-SHA256 over the body, hex, labelled `v1`, in `circleci-signature`.
//!
//! <https://circleci.com/docs/guides/integration/outbound-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "circleci",
    title: "CircleCI",
    docs: "https://circleci.com/docs/guides/integration/outbound-webhooks/",
    schemes: items![hmac(label("circleci-signature", ",", "v1")).scheme()],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/job/id"), json("/workflow/id"), json("/pipeline/id")],
    version: items![version(json("/happened_at"), Unit::Iso8601)],
    retry: "Not confirmed; some retries after network errors and 5xx are spoken of.",
    find_secret: "Project settings, Webhooks, your webhook, Secret token: the one you chose there.",
    notes: "CircleCI waits 5 s for an answer.",
    sample_type: "workflow-completed",
    sample_body: r#"{"webhook":{"id":"cf8c4fdd-0587-4da1-b4ca-4846e9640af9","name":"Sample"},
        "workflow":{"name":"build-test","status":"success",
        "url":"https://app.circleci.com/sample"},"pipeline":{"number":130},
        "project":{"slug":"github/sample/sample"}}"#,
    sample_object: "3a3b577a-9d0c-4b1f-8d6d-d2e2f3a4b5c6",
    ..BLANK
}
.provider();
