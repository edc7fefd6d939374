//! ServiceChannel: HMAC-SHA256 over the body, base64, in `Sign-Data`.
//!
//! <https://developer.servicechannel.com/guides/notifications/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "servicechannel",
    title: "ServiceChannel",
    docs: "https://developer.servicechannel.com/guides/notifications/",
    // `Sign-Type` beside it names the algorithm and is not heeded: a request never chooses.
    schemes: items![hmac(in_header("sign-data")).base64().scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/EventType"))],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The signing key of the subscription.",
    notes: "ServiceChannel waits 5 s for an answer.",
    sample_type: "WorkOrderStatusChanged",
    sample_body: r#"{"Object":{"Id":42}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
