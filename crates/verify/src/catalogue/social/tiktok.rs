//! TikTok for developers: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `TikTok-Signature`.
//!
//! <https://developers.tiktok.com/doc/webhooks-verification>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "tiktok",
    title: "TikTok for developers",
    docs: "https://developers.tiktok.com/doc/webhooks-verification",
    // It retries for days, and does not say that it signs again.
    schemes: items![
        hmac(label("tiktok-signature", ",", "s"))
            .undated(label("tiktok-signature", ",", "t"), SECONDS)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event"))],
    object: items![json("/user_openid")],
    version: items![version(json("/create_time"), Unit::Seconds)],
    retry: "Not confirmed; retries for up to 72 hours are spoken of.",
    retry_hours: 72,
    find_secret: "Developer portal, your app, Client secret.",
    notes: "What is in /content is JSON written as text.",
    sample_type: "video.publish.completed",
    sample_body: r#"{"client_key":"sample","content":"{}"}"#,
    sample_object: "act.example12345Example12345Example",
    ..BLANK
}
.provider();
