//! Front: HMAC-SHA256 over `{timestamp}:{body}`, base64, in `X-Front-Signature`.
//!
//! <https://dev.frontapp.com/docs/application-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "front",
    title: "Front",
    docs: "https://dev.frontapp.com/docs/application-webhooks",
    // Whether retries are signed again is not known, so any age passes.
    schemes: items![
        hmac(in_header("x-front-signature"))
            .base64()
            .undated(in_header("x-front-request-timestamp"), MILLISECONDS)
            .over(list![TIME, lit(":"), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    handshakes: items![
        asks(POST, Wants::Is(json("/type"), text("sync")))
            .signed()
            .challenge(header("x-front-challenge"))
            .says(Said::Json(list![(text("challenge"), list![Piece::Challenge])]))
    ],
    retry: "Not confirmed; up to three retries are spoken of.",
    find_secret: "Settings, Developers, your app, Application secret (signing key).",
    notes: "These are application webhooks. Those of rules are signed with HMAC-SHA1 over the \
         body alone and refused here.",
    sample_type: "inbound_received",
    sample_body: r#"{"authorization":{"id":"cmp_abc"},"payload":{"id":"evt_sample",
        "conversation":{"id":"cnv_sample"}}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
