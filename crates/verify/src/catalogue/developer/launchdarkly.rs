//! LaunchDarkly: HMAC-SHA256 over the body, hex, in `X-LD-Signature`.
//!
//! <https://launchdarkly.com/docs/integrations/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "launchdarkly",
    title: "LaunchDarkly",
    docs: "https://launchdarkly.com/docs/integrations/webhooks",
    schemes: items![hmac(in_header("x-ld-signature")).scheme()],
    identity: items![id(json("/_id"))],
    event_type: items![kind_with(json("/kind"), json("/titleVerb"))],
    version: items![version(json("/date"), Unit::Milliseconds)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Integrations, Webhooks, your webhook, Secret, once signing is turned on.",
    notes: "A webhook that is not set to sign is refused here.",
    sample_type: "flag.turned on the flag",
    sample_body: r#"{"name":"A sample","description":"",
        "member":{"email":"alice@example.com"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
