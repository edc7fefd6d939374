//! Langfuse: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `x-langfuse-signature`.
//!
//! <https://langfuse.com/docs/prompt-management/features/webhooks-slack-integrations>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "langfuse",
    title: "Langfuse",
    docs: "https://langfuse.com/docs/prompt-management/features/webhooks-slack-integrations",
    // Whether retries are signed again is not known, so any age passes. The whole secret is the
    // key.
    schemes: items![
        hmac(label("x-langfuse-signature", ",", "v1"))
            .undated(label("x-langfuse-signature", ",", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind_with(json("/type"), json("/action"))],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Shown once when the webhook is made (lf-whsec_...).",
    notes: "The scheme was read in one catalogue only, not at Langfuse.",
    sample_type: "prompt-version.created",
    sample_body: r#"{"apiVersion":"v1","prompt":{"name":"sample","version":1}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
