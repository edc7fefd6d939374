//! MailerSend: HMAC-SHA256 over the body, hex, in `Signature`.
//!
//! <https://developers.mailersend.com/api/v1/webhooks.html>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mailersend",
    title: "MailerSend",
    docs: "https://developers.mailersend.com/api/v1/webhooks.html",
    schemes: items![hmac(in_header("signature")).scheme()],
    // Nobody says that every event has an id of its own; with the type it is one.
    identity: items![Identity::Joined(list![json("/type"), json("/data/id")]), Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/email/message/id")],
    version: items![version(json("/created_at"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "Domains, your domain, Webhooks, your webhook, Signing secret.",
    sample_type: "activity.delivered",
    sample_body: r#"{"domain_id":"7z3m5jgrogdpyo6n","data":{"object":"activity",
        "type":"delivered"}}"#,
    sample_object: "62fb66bef54a112e920b5493",
    ..BLANK
}
.provider();
