//! HCP Terraform: HMAC-SHA512 over the body, hex, in `X-TFE-Notification-Signature`.
//!
//! <https://developer.hashicorp.com/terraform/cloud-docs/workspaces/settings/notifications>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "terraform-cloud",
    title: "HCP Terraform",
    docs: "https://developer.hashicorp.com/terraform/cloud-docs/workspaces/settings/notifications",
    schemes: items![hmac(in_header("x-tfe-notification-signature")).sha512().scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/notifications/0/trigger"))],
    object: items![json("/run_id")],
    version: items![version(json("/notifications/0/run_updated_at"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Workspace settings, Notifications, your notification, Token: the one you chose \
         there.",
    notes: "A notification without a token is not signed and refused here. A first one verifies \
         the URL when it is enabled.",
    sample_type: "run:completed",
    sample_body: r#"{"payload_version":1,"workspace_name":"sample",
        "notifications":[{"message":"Run Completed","run_status":"applied"}]}"#,
    sample_object: "run-FwnENkvDnrpyFC7M",
    ..BLANK
}
.provider();
