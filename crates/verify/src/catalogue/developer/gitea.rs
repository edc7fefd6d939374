//! Gitea: HMAC-SHA256 over the payload, hex, in `X-Gitea-Signature`.
//!
//! <https://docs.gitea.com/usage/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "gitea",
    title: "Gitea",
    docs: "https://docs.gitea.com/usage/webhooks",
    // Unlike GitHub, of a form only the payload is signed, not the form around it.
    schemes: items![
        hmac(in_header("x-gitea-signature")).separated(',').scheme(),
        of_form("x-gitea-signature"),
        hmac(in_header("x-forgejo-signature")).separated(',').scheme(),
        of_form("x-forgejo-signature")
    ],
    payload: Payload::FormJson("payload"),
    identity: items![id(header("x-gitea-delivery")), id(header("x-forgejo-delivery"))],
    event_type: items![
        kind_with(header("x-gitea-event"), json("/action")),
        kind_with(header("x-forgejo-event"), json("/action"))
    ],
    object: items![
        json("/issue/id"),
        json("/pull_request/id"),
        json("/release/id"),
        json("/repository/id")
    ],
    version: items![
        version(json("/issue/updated_at"), Unit::Iso8601),
        version(json("/pull_request/updated_at"), Unit::Iso8601)
    ],
    twins: hold(
        "The repository in each body carries updated_at, and of a form only the payload is signed.",
    ),
    retry: "Never retries by itself; deliveries can be sent again by hand.",
    find_secret: "Settings, Webhooks, your webhook, Secret: the one you chose there.",
    notes: "Forgejo signs in the same way. The headers of GitHub and Gogs that both send beside \
         theirs are not looked at.",
    sample_type: "issues.opened",
    sample_headers: items![(text("user-agent"), text("Go-http-client/1.1"))],
    sample_body: r#"{"issue":{"number":1,"title":"A sample"},"repository":{"id":1,
        "full_name":"sample/sample"}}"#,
    sample_object: "7",
    ..BLANK
}
.provider();

const fn of_form(header: &'static str) -> Scheme {
    hmac(in_header(header)).separated(',').over(list![Part::Form(text("payload"))]).scheme()
}
