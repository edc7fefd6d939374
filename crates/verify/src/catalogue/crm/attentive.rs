//! Attentive: HMAC-SHA256 over the body, hex, in `x-attentive-hmac-sha256`.
//!
//! <https://docs.attentive.com/pages/developer-guides/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "attentive",
    title: "Attentive",
    docs: "https://docs.attentive.com/pages/developer-guides/webhooks/",
    schemes: items![hmac(in_header("x-attentive-hmac-sha256")).scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    version: items![version(json("/timestamp"), Unit::Plain)],
    retry: "Not confirmed; retries for up to three days are spoken of, after which the webhook \
         is disabled.",
    retry_hours: 72,
    find_secret: "Marketplace, your app, Webhooks, Signing key.",
    notes: "The scheme was read in one catalogue only, not at Attentive.",
    sample_type: "sms.sent",
    sample_body: r#"{"subscriber":{"phone":"+14150001111"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
