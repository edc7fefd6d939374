//! SurveyMonkey: HMAC-SHA1 over the body, base64, keyed with the client id and secret.
//!
//! <https://api.surveymonkey.com/v3/docs#webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "surveymonkey",
    title: "SurveyMonkey",
    docs: "https://api.surveymonkey.com/v3/docs#webhooks",
    schemes: items![hmac(in_header("sm-signature")).sha1().base64().scheme()],
    identity: items![id(json("/event_id"))],
    event_type: items![kind(json("/event_type"))],
    object: items![json("/object_id")],
    version: items![version(json("/event_datetime"), Unit::Iso8601)],
    handshakes: items![asks(HEAD, Wants::Method)],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The client id of the app, then &, then its secret, all in one: id&secret.",
    notes: "SurveyMonkey asks with HEAD whether the URL is there.",
    sample_type: "response_completed",
    sample_body: r#"{"name":"A sample","filter_type":"survey","filter_id":"123456789",
        "object_type":"response","resources":{"respondent_id":"1000000",
        "survey_id":"123456789"}}"#,
    sample_object: "10000000",
    ..BLANK
}
.provider();
