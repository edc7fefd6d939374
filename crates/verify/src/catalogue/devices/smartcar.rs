//! Smartcar: HMAC-SHA256 over the body, hex, in `SC-Signature`.
//!
//! <https://smartcar.com/docs/integrations/webhooks/overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "smartcar",
    title: "Smartcar",
    docs: "https://smartcar.com/docs/integrations/webhooks/overview",
    schemes: items![hmac(in_header("sc-signature")).scheme()],
    identity: items![id(json("/eventId"))],
    event_type: items![kind(json("/eventType"))],
    handshakes: items![
        asks(POST, Wants::Is(json("/eventType"), text("VERIFY")))
            .challenge(json("/data/challenge"))
            .says(Said::Json(list![(
                text("challenge"),
                list![Piece::Mac(Algorithm::HmacSha256, Encoding::Hex)]
            )]))
    ],
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "Dashboard, your application, Configuration: the application management \
         token.",
    notes: "Smartcar waits 15 s.",
    sample_type: "VEHICLE_STATE",
    sample_body: r#"{"data":{"vehicle":{"id":"sample"}},"meta":{"version":"4.0"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
