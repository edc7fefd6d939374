//! Webflow: HMAC-SHA256 over `{timestamp}:{body}`, hex, in `x-webflow-signature`.
//!
//! <https://developers.webflow.com/data/docs/working-with-webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "webflow",
    title: "Webflow",
    docs: "https://developers.webflow.com/data/docs/working-with-webhooks",
    schemes: items![
        hmac(in_header("x-webflow-signature"))
            .stamp(in_header("x-webflow-timestamp"), MILLISECONDS, 300)
            .over(list![TIME, lit(":"), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/triggerType"))],
    object: items![json("/payload/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The client secret of the app; for a webhook made with a token, its secretKey \
         in the answer to the call.",
    notes: "Webhooks made in the dashboard may be sent without a signature and are refused here.",
    sample_type: "form_submission",
    sample_body: r#"{"payload":{"name":"Contact","data":{"email":"alice@example.com"}}}"#,
    sample_object: "65429eadebe8a9f3a30f62d0",
    ..BLANK
}
.provider();
