//! Statsig: HMAC-SHA256 over `v0:{timestamp}:{body}`, hex after `v0=`.
//!
//! <https://docs.statsig.com/integrations/event_webhook>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "statsig",
    title: "Statsig",
    docs: "https://docs.statsig.com/integrations/event_webhook",
    // Whether retries are signed again is not known, so any age passes.
    schemes: items![
        hmac(in_header("x-statsig-signature"))
            .prefix("v0=")
            .undated(in_header("x-statsig-request-timestamp"), MILLISECONDS)
            .over(list![lit("v0:"), TIME, lit(":"), BODY])
            .scheme()
    ],
    identity: items![Identity::Digest],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Project settings, Integrations, Event webhook, Signing secret.",
    notes: "A request is one event here, whatever it holds. The scheme was read in one catalogue \
         only, not at Statsig.",
    sample_type: "unknown",
    sample_body: r#"{"data":[{"eventName":"statsig::config_change"}]}"#,
    sample_object: "",
    ..BLANK
}
.provider();
