//! SonarQube: HMAC-SHA256 over the body, hex, in `X-Sonar-Webhook-HMAC-SHA256`.
//!
//! <https://docs.sonarsource.com/sonarqube-server/latest/project-administration/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "sonarqube",
    title: "SonarQube",
    docs: "https://docs.sonarsource.com/sonarqube-server/latest/project-administration/webhooks/",
    schemes: items![hmac(in_header("x-sonar-webhook-hmac-sha256")).scheme()],
    // A change of the quality gate is no task.
    identity: items![id(json("/taskId")), Identity::Digest],
    event_type: items![kind_after("analysis.", json("/status"))],
    object: items![json("/project/key")],
    version: items![version(json("/analysedAt"), Unit::Iso8601)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "Administration, Configuration, Webhooks, your webhook, Secret: the one you \
         chose there.",
    notes: "SonarCloud signs in the same way. The scheme was not read again at SonarSource.",
    sample_type: "analysis.SUCCESS",
    sample_body: r#"{"serverUrl":"https://sonar.example.com","project":{"name":"A sample"},
        "qualityGate":{"name":"Sonar way","status":"OK"}}"#,
    sample_object: "sample",
    ..BLANK
}
.provider();
