//! Inngest: HMAC-SHA256 over `{body}{timestamp}`, hex, in `X-Inngest-Signature`.
//!
//! <https://www.inngest.com/docs/platform/signing-keys>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "inngest",
    title: "Inngest",
    docs: "https://www.inngest.com/docs/platform/signing-keys",
    schemes: items![
        hmac(label("x-inngest-signature", "&", "s"))
            .stamp(label("x-inngest-signature", "&", "t"), SECONDS, 300)
            .over(list![BODY, TIME])
            .key(KeyForm::AfterSignkey)
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/event/name"))],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Manage, Signing key (signkey-...).",
    notes: "Inngest calls a function and reads the answer as its result: this is for recording \
         calls, not for serving them. A body that Inngest signed in canonical form, but sent \
         otherwise, is refused.",
    sample_type: "app/user.created",
    sample_body: r#"{"event":{"data":{}},"ctx":{"run_id":"sample","attempt":0}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
