//! RingCentral: a static token in `Verification-Token`.
//!
//! <https://developers.ringcentral.com/guide/notifications/webhooks/quick-start>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "ringcentral",
    title: "RingCentral",
    docs: "https://developers.ringcentral.com/guide/notifications/webhooks/quick-start",
    schemes: items![token("verification-token")],
    identity: items![id(json("/uuid")), Identity::Digest],
    event_type: items![kind(json("/event"))],
    version: items![version(json("/timestamp"), Unit::Iso8601)],
    handshakes: items![
        asks(POST, Wants::Has(header("validation-token")))
            .challenge(header("validation-token"))
            .headers(list![(text("validation-token"), Piece::Challenge)])
    ],
    answer: Some(Answer::Status(200)),
    retry: "Not confirmed: while it fails, the subscription is blacklisted.",
    find_secret: "The verificationToken you name when you make the subscription.",
    notes: "The body is not signed: read the object again before acting.",
    sample_type: "/restapi/v1.0/account/~/extension/~/message-store",
    sample_body: r#"{"subscriptionId":"sample","ownerId":"1","body":{}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
