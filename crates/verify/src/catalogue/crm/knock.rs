//! Knock: HMAC-SHA256 over `{timestamp}.{body}`, base64, in `x-knock-signature`.
//!
//! <https://docs.knock.app/developer-tools/outbound-webhooks/overview>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "knock",
    title: "Knock",
    docs: "https://docs.knock.app/developer-tools/outbound-webhooks/overview",
    schemes: items![
        hmac(label("x-knock-signature", ",", "s"))
            .base64()
            .stamp(label("x-knock-signature", ",", "t"), MILLISECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/type"))],
    object: items![json("/data/id")],
    retry: "Up to eight retries.",
    find_secret: "Dashboard, Developers, Webhooks, your webhook, Signing key.",
    notes: "The scheme was read in one catalogue only, not at Knock.",
    sample_type: "message.sent",
    sample_body: r#"{"data":{"status":"sent"}}"#,
    sample_object: "2UTSzRIYcTKjYqfZDOzhyL86jSn",
    ..BLANK
}
.provider();
