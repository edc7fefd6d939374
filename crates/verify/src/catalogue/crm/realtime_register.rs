//! Realtime Register: HMAC-SHA256 over the body, base64, in `Signature`.
//!
//! <https://dm.realtimeregister.com/docs/api/notifications/webhook>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "realtime-register",
    title: "Realtime Register",
    docs: "https://dm.realtimeregister.com/docs/api/notifications/webhook",
    schemes: items![hmac(in_header("signature")).base64().scheme()],
    identity: items![Identity::Digest],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Account, Notifications, Webhook, Secret.",
    notes: "Which fields name the event is not known: its content does.",
    sample_type: "unknown",
    sample_body: r#"{"message":"A sample"}"#,
    sample_object: "",
    ..BLANK
}
.provider();
