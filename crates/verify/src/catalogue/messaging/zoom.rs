//! Zoom: HMAC-SHA256 over `v0:{timestamp}:{body}`, hex after `v0=`, in `x-zm-signature`.
//!
//! <https://developers.zoom.us/docs/api/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "zoom",
    title: "Zoom",
    docs: "https://developers.zoom.us/docs/api/webhooks/",
    // Zoom mandates no window; 300 s are usual.
    schemes: items![
        hmac(in_header("x-zm-signature"))
            .prefix("v0=")
            .stamp(in_header("x-zm-request-timestamp"), SECONDS, 300)
            .over(list![lit("v0:"), TIME, lit(":"), BODY])
            .scheme()
    ],
    // There is no event id.
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event"))],
    object: items![json("/payload/object/uuid"), json("/payload/object/id")],
    version: items![version(json("/event_ts"), Unit::Milliseconds)],
    // Asked again every 72 hours, and signed like an event.
    handshakes: items![
        asks(POST, Wants::Is(json("/event"), text("endpoint.url_validation")))
            .signed()
            .challenge(json("/payload/plainToken"))
            .says(Said::Json(list![
                (text("plainToken"), list![Piece::Challenge]),
                (text("encryptedToken"), list![Piece::Mac(Algorithm::HmacSha256, Encoding::Hex)])
            ]))
    ],
    // Zoom takes 200 and 204 only.
    answer: Some(Answer::Status(200)),
    retry: "Three retries: after 5, 20 and 60 minutes.",
    retry_hours: 2,
    find_secret: "App Marketplace, your app, Feature, Event subscriptions: the secret token.",
    notes: "Zoom waits 3 s, and disables an endpoint that stops to answer its validation. \
         With two secrets, the validation is answered with the one that signed it.",
    sample_type: "meeting.started",
    sample_body: r#"{"payload":{"account_id":"AAAAAABBBB","object":{"id":"1234567890",
        "topic":"My Meeting","host_id":"x1yCzABCDEfg23HiJKl4mN","type":2,
        "timezone":"UTC"}}}"#,
    sample_object: "czLF6FFFoQOKgAB99DlDb9g==",
    ..BLANK
}
.provider();
