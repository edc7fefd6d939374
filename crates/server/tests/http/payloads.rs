//! Bodies that verify and cannot be read: 400, and nothing stored.

use crate::bed::Bed;

async fn assert_malformed(body: impl Into<Vec<u8>>, detail: &str) {
    let bed = Bed::start().await;
    let draft = bed.signed_body(body);
    let answer = bed.post("stripe", &draft).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    let expected = format!(r#"{{"error":"malformed_payload","detail":"{detail}"}}"#);
    assert_eq!(answer.body, expected);
    bed.assert_untouched(detail).await;
    let reason = format!(r#"oncebox_rejections_total{{source="stripe",reason="{detail}"}}"#);
    assert_eq!(bed.metric(&reason).await, 1.0);
}

#[tokio::test]
async fn an_empty_body() {
    assert_malformed("", "not_json").await;
}

#[tokio::test]
async fn a_body_that_is_not_json() {
    assert_malformed("id=evt_1&type=x", "not_json").await;
    assert_malformed(r#"{"id":"evt_1","type":"x"} trailing"#, "not_json").await;
    assert_malformed(r#"{"id":"evt_1","type":"x""#, "not_json").await;
}

#[tokio::test]
async fn json_that_is_no_object() {
    assert_malformed(r#""evt_1""#, "not_object").await;
}

#[tokio::test]
async fn json_without_an_identity() {
    assert_malformed(r#"{"type":"invoice.paid"}"#, "no_identity").await;
    assert_malformed(r#"{"id":null,"type":"invoice.paid"}"#, "no_identity").await;
}

#[tokio::test]
async fn duplicate_keys() {
    assert_malformed(r#"{"id":"evt_1","id":"evt_2","type":"x"}"#, "duplicate_key").await;
    assert_malformed(r#"{"id":"evt_1","\u0069d":"evt_2","type":"x"}"#, "duplicate_key").await;
}

#[tokio::test]
async fn json_ten_thousand_levels_deep() {
    let (open, close) = ("[".repeat(10_000), "]".repeat(10_000));
    let body = format!(r#"{{"id":"evt_1","type":"x","data":{open}{close}}}"#);
    assert_malformed(body, "too_deep").await;
    let open = r#"{"a":"#.repeat(10_000);
    assert_malformed(format!("{open}1{}", "}".repeat(10_000)), "too_deep").await;
}

#[tokio::test]
async fn invalid_utf8() {
    assert_malformed(&b"{\"id\":\"evt_1\",\"type\":\"\xff\xfe\"}"[..], "not_utf8").await;
}

#[tokio::test]
async fn identities_that_cannot_be_keys() {
    assert_malformed(format!(r#"{{"id":"{}","type":"x"}}"#, "a".repeat(513)), "bad_value").await;
    assert_malformed(r#"{"id":"evt_\u0000","type":"x"}"#, "bad_value").await;
    assert_malformed(r#"{"id":"evt_1","type":"x\u001b[2J"}"#, "bad_value").await;
}
