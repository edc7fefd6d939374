//! EasyPost: HMAC-SHA256 over the body, hex after `hmac-sha256-hex=`, in `X-Hmac-Signature`.
//!
//! <https://docs.easypost.com/guides/webhooks-guide>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "easypost",
    title: "EasyPost",
    docs: "https://docs.easypost.com/guides/webhooks-guide",
    // The secret is brought into Unicode form NFKD first.
    schemes: items![
        hmac(in_header("x-hmac-signature")).prefix("hmac-sha256-hex=").key(KeyForm::Nfkd).scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/description"))],
    object: items![json("/result/id")],
    version: items![version(json("/updated_at"), Unit::Iso8601)],
    retry: "Not documented; expect retries.",
    find_secret: "The webhook_secret that you chose when you made the webhook.",
    sample_type: "tracker.updated",
    sample_body: r#"{"object":"Event","mode":"test","result":{"object":"Tracker",
        "status":"delivered"}}"#,
    sample_object: "trk_sample",
    ..BLANK
}
.provider();
