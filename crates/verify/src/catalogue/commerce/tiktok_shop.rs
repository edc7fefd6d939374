//! TikTok Shop: HMAC-SHA256 over `{app key}{body}`, hex, in `Authorization`.
//!
//! <https://partner.tiktokshop.com/docv2/page/tts-webhooks-overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "tiktok-shop",
    title: "TikTok Shop",
    docs: "https://partner.tiktokshop.com/docv2/page/tts-webhooks-overview",
    schemes: items![
        hmac(in_header("authorization")).over(list![Part::Setting(text("app_key")), BODY]).scheme()
    ],
    settings: items![needed(
        "app_key",
        "The app key of the app, beside its secret in the Partner Center."
    )],
    identity: items![id(json("/tts_notification_id"))],
    // A number, such as 1 for the status of an order.
    event_type: items![kind(json("/type"))],
    object: items![json("/data/order_id"), json("/shop_id")],
    version: items![version(json("/timestamp"), Unit::Seconds)],
    answer: Some(Answer::Status(200)),
    retry: "After 2 and 30 minutes, 3 and 12 hours.",
    retry_hours: 16,
    find_secret: "Partner Center, your app: the app secret.",
    notes: "TikTok Shop waits 3 s.",
    sample_type: "1",
    sample_body: r#"{"shop_id":"7494049642642441621","data":{"order_status":"UNPAID"}}"#,
    sample_object: "576486316948490001",
    ..BLANK
}
.provider();
