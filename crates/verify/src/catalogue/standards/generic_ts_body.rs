//! Any HMAC with a time: HMAC-SHA256 over `{timestamp}.{body}`, hex, in `X-Webhook-Signature`.
//!
//! <https://github.com/oncebox/oncebox/blob/main/docs/providers.md>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "generic-ts-body",
    title: "Any HMAC with a time",
    docs: "https://github.com/oncebox/oncebox/blob/main/docs/providers.md",
    schemes: items![
        hmac(in_header("x-webhook-signature"))
            .encoding(Encoding::HexAnyCase)
            .stamp(in_header("x-webhook-timestamp"), SECONDS, 300)
            .over(list![TIME, lit("."), BODY])
            .scheme()
    ],
    // Senders of this shape need not name their events.
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "As the sender pleases.",
    find_secret: "Agree on one with the sender.",
    notes: "The provider hmac with a time in X-Webhook-Timestamp; where header, template or \
         encoding differ, use hmac and say so.",
    sample_type: "sample.created",
    sample_body: r#"{"data":{"message":"hello"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
