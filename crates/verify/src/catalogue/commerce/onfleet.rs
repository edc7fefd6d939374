//! Onfleet: HMAC-SHA512 over the body, hex, in `X-Onfleet-Signature`; the secret is hex.
//!
//! <https://docs.onfleet.com/reference/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "onfleet",
    title: "Onfleet",
    docs: "https://docs.onfleet.com/reference/webhooks",
    schemes: items![hmac(in_header("x-onfleet-signature")).sha512().key(KeyForm::Hex).scheme()],
    identity: items![Identity::Digest],
    // A number, such as 3 for a completed task.
    event_type: items![kind(json("/triggerId"))],
    object: items![json("/taskId")],
    version: items![version(json("/time"), Unit::Milliseconds)],
    handshakes: items![asks(GET, Wants::Has(query("check"))).challenge(query("check")).says(ECHO)],
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "Settings, API and Webhooks: the webhook secret.",
    sample_type: "3",
    sample_body: r#"{"workerId":"sample","data":{"task":{"state":3}}}"#,
    sample_object: "11z1BbsQUZFHD1XAd~emDDeK",
    ..BLANK
}
.provider();
