//! Hugging Face: a secret sent as it is, in `X-Webhook-Secret`.
//!
//! <https://huggingface.co/docs/hub/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "huggingface",
    title: "Hugging Face",
    docs: "https://huggingface.co/docs/hub/webhooks",
    schemes: items![token("x-webhook-secret")],
    identity: items![Identity::Digest],
    event_type: items![kind_with(json("/event/scope"), json("/event/action"))],
    object: items![json("/repo/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Settings, Webhooks, your webhook, Secret: the one you chose there.",
    notes: "The secret proves who sent a request, not what was sent.",
    sample_type: "repo.update",
    sample_body: r#"{"repo":{"type":"model","name":"openai-community/gpt2",
        "headSha":"c379e821"},"webhook":{"id":"sample","version":3}}"#,
    sample_object: "621ffdc036468d709f17434d",
    ..BLANK
}
.provider();
