//! Atlassian Connect: a token in `Authorization: JWT`, signed with HS256, that has a hash of
//! method, path and query.
//!
//! <https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "atlassian-connect",
    title: "Atlassian Connect apps",
    docs: "https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/",
    schemes: items![
        jwt("authorization", list![JwsAlgorithm::Hs256], JwsKeys::Secret)
            .word("JWT")
            .claims(list![
                Claim::QueryHash,
                Claim::MayBeSetting(text("iss"), text("client_key")),
                Claim::Expires,
            ])
            .scheme()
    ],
    settings: items![
        optional("client_key", "The `clientKey` of the installation, which must have signed."),
        optional("base_url", "The `baseUrl` of the app, if the webhook's path is below another."),
    ],
    identity: items![id(header("x-atlassian-webhook-identifier")), Identity::Digest],
    event_type: items![kind(json("/webhookEvent")), kind(json("/eventType"))],
    object: items![json("/issue/id"), json("/page/id"), json("/project/id")],
    version: items![version(json("/timestamp"), Unit::Milliseconds)],
    retry: "Not documented for Connect in detail; Jira retries up to five times within 30 minutes.",
    retry_hours: 1,
    find_secret: "The `sharedSecret` that the installation callback of your app received.",
    notes: "The token covers method, path and query, not the body. The callbacks of the \
         installation itself are signed with RS256 and belong to your app, not here. A token in \
         the query (`jwt`) is not read.",
    sample_type: "jira:issue_updated",
    sample_body: r#"{"issue_event_type_name":"issue_generic","issue":{"key":"EX-1",
        "fields":{"summary":"A sample"}}}"#,
    sample_object: "10002",
    ..BLANK
}
.provider();
