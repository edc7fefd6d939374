//! Azure DevOps: user and password in `Authorization`.
//!
//! <https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "azure-devops",
    title: "Azure DevOps",
    docs: "https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks",
    schemes: items![BASIC],
    identity: items![Identity::Joined(list![json("/subscriptionId"), json("/notificationId")])],
    event_type: items![kind(json("/eventType"))],
    object: items![json("/resource/id")],
    version: items![version(json("/createdDate"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The basic authentication user and password of the subscription, written as \
         user:password.",
    notes: "Nothing is signed: the password proves who sent a request, not what was sent.",
    sample_type: "git.push",
    sample_body: r#"{"subscriptionId":"00000000-0000-0000-0000-000000000001",
        "notificationId":1,"publisherId":"tfs","resource":{}}"#,
    sample_object: "42",
    ..BLANK
}
.provider();
