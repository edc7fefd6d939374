//! What is kept of a request, and what keeping is bounded by.

use oncebox::receipt::decode_headers;

use crate::bed::Bed;

/// A source that keeps as much as it may is told to come back, and others are not.
#[tokio::test]
async fn a_source_over_its_quota_is_refused() {
    let bed = Bed::configured(
        r#"
[sources.small]
provider = "github"
secrets = ["canary-github-secret"]
quota = "2KiB"

[sources.stripe]
provider = "stripe"
secrets = ["whsec_canary_stripe_secret"]
"#,
    )
    .await;
    let mut kept = 0;
    let refused = loop {
        let event = bed.signed("github", crate::bed::GITHUB, &format!("d-{kept}"));
        let mut event = event;
        // Another body each time, or it would be a twin.
        event.body.extend(std::iter::repeat_n(b' ', kept));
        let github = oncebox_verify::catalogue::find("github").unwrap();
        let secret = oncebox_verify::Secret::new(crate::bed::GITHUB);
        let at = oncebox::clock::Clock::now(&*bed.clock);
        let event = oncebox_verify::sign(github, &secret, event, at).unwrap();
        let answer = bed.post("small", &event).await;
        if answer.status != 202 {
            break answer;
        }
        kept += 1;
        assert!(kept < 100, "the quota never held");
    };
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    assert!(kept > 0);
    assert_eq!(bed.stored().await.len(), kept);
    // What is kept already takes no room, and is not told that there is none.
    let again = bed.signed("github", crate::bed::GITHUB, "d-0");
    assert_eq!(bed.post("small", &again).await.status, 200);
    let reason = r#"oncebox_unavailable_total{source="small",reason="source_quota"}"#;
    assert_eq!(bed.metric(reason).await, 1.0);
    assert!(bed.metric(r#"oncebox_stored_bytes{source="small"}"#).await >= 2048.0);
    assert_eq!(bed.post("stripe", &bed.event("evt_1")).await.status, 202);
}

/// Where the URL is signed it is kept, so that the receipt can be verified again later.
#[tokio::test]
async fn a_signed_url_is_kept() {
    let bed = Bed::configured(
        r#"
[sources.sms]
provider = "twilio"
secrets = ["canary-twilio-secret"]
public_url = "https://hooks.example.com/in/sms"
"#,
    )
    .await;
    let twilio = oncebox_verify::catalogue::find("twilio").unwrap();
    let at = oncebox::clock::Clock::now(&*bed.clock);
    let event = oncebox_verify::SampleEvent { id: "tok-1", event_type: "", at, object: None };
    let mut draft = oncebox_verify::sample(twilio, &event);
    draft.url = "https://hooks.example.com/in/sms".into();
    let secret = oncebox_verify::Secret::new("canary-twilio-secret");
    let draft = oncebox_verify::sign(twilio, &secret, draft, at).unwrap();
    let answer = bed.post("sms", &draft).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "<Response/>"));

    let receipt = bed.stored().await[0].receipt;
    let receipt = bed.server.inbox.store.receipt(receipt).await.unwrap().unwrap();
    let headers = decode_headers(&receipt.headers);
    let url = headers.iter().find(|(name, _)| name == "oncebox-signed-url").unwrap();
    assert_eq!(url.1, b"https://hooks.example.com/in/sms");
}

/// What a source reads is kept, whatever it is called: the receipt can be verified again. What else
/// is called like ours is not.
#[tokio::test]
async fn a_header_that_proves_is_kept() {
    let bed = Bed::configured(
        r#"
[sources.relay]
provider = "hmac"
secrets = ["canary-relay-secret"]
signature_header = "Oncebox-Signature"
event_id = "header:Oncebox-Event-Id"
"#,
    )
    .await;
    let source = bed.server.inbox.live().sources.find("relay").unwrap();
    let draft = oncebox_verify::Draft {
        method: "POST".into(),
        url: "/in/relay".into(),
        headers: http::HeaderMap::new(),
        body: b"{}".to_vec(),
    };
    let secret = oncebox_verify::Secret::new("canary-relay-secret");
    let at = oncebox::clock::Clock::now(&*bed.clock);
    let mut draft = oncebox_verify::sign(&source.provider, &secret, draft, at).unwrap();
    for (name, value) in [("oncebox-event-id", "d-1"), ("oncebox-trust", "unverified")] {
        draft.headers.insert(name, http::HeaderValue::from_static(value));
    }
    assert_eq!(bed.post("relay", &draft).await.status, 202);
    let receipt = bed.stored().await[0].receipt;
    let receipt = bed.server.inbox.store.receipt(receipt).await.unwrap().unwrap();
    let mut headers = http::HeaderMap::new();
    for (name, value) in decode_headers(&receipt.headers) {
        let name = http::HeaderName::try_from(name).unwrap();
        headers.append(name, http::HeaderValue::from_bytes(&value).unwrap());
    }
    assert_eq!(headers["oncebox-event-id"], "d-1");
    assert!(!headers.contains_key("oncebox-trust"));
    let (url, body) = ("/in/relay", &receipt.body[..]);
    let request = oncebox_verify::Request { method: "POST", url, headers: &headers, body };
    oncebox_verify::verify(&source.provider, &source.keyring, &request, at).unwrap();
}

/// Providers that take only 200 for a success get it, in our words.
#[tokio::test]
async fn a_provider_gets_the_status_it_needs() {
    let bed = Bed::configured(
        r#"
[sources.linear]
provider = "linear"
secrets = ["canary-linear-secret"]
"#,
    )
    .await;
    let event = bed.signed("linear", "canary-linear-secret", "d-1");
    let answer = bed.post("linear", &event).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(r#"{"status":"accepted","receipt":""#), "{}", answer.body);
}

/// A captured request whose unsigned id was removed is a twin of the event, not a new one.
#[tokio::test]
async fn removing_an_unsigned_id_lets_nothing_in_unmarked() {
    let bed = Bed::configured(
        r#"
[sources.gitlab]
provider = "gitlab"
secrets = ["canary-gitlab-token"]
"#,
    )
    .await;
    let mut event = bed.signed("gitlab", "canary-gitlab-token", "key-1");
    event.headers.insert("idempotency-key", "key-1".parse().unwrap());
    assert_eq!(bed.post("gitlab", &event).await.status, 202);
    event.headers.remove("idempotency-key");
    event.headers.remove("webhook-id");
    let answer = bed.post("gitlab", &event).await;
    assert!(answer.status == 202 && answer.body.contains(r#""note":"twin""#), "{}", answer.body);
    let stored = bed.stored().await;
    let first = stored.iter().find(|summary| summary.event_id == "key-1").unwrap().receipt;
    let marks: Vec<_> = stored.iter().filter_map(|summary| summary.mark).collect();
    assert_eq!((stored.len(), marks.len(), marks[0].first), (2, 1, Some(first)));
}
