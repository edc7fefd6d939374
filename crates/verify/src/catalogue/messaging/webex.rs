//! Webex: HMAC-SHA1 over the body, hex, in `X-Spark-Signature`.
//!
//! <https://developer.webex.com/docs/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "webex",
    title: "Webex",
    docs: "https://developer.webex.com/docs/webhooks",
    schemes: items![hmac(in_header("x-spark-signature")).sha1().scheme()],
    // `/id` names the webhook, not the event.
    identity: items![Identity::Digest],
    event_type: items![kind_with(json("/resource"), json("/event"))],
    object: items![json("/data/id")],
    retry: "Not documented; expect retries.",
    find_secret: "The secret that you chose when you made the webhook.",
    sample_type: "messages.created",
    sample_body: r#"{"id":"Y2lzY29zcGFyazov","name":"Sample","data":{"roomType":"direct"}}"#,
    sample_object: "Y2lzY29zcGFyazovL3VzL01FU1NBR0Uv",
    ..BLANK
}
.provider();
