//! Questions of providers: answered by every method, never stored, and giving nothing away.

use oncebox_verify::{Draft, Secret, catalogue, generate_pair, sign};
use sha2::{Digest as _, Sha256};

use crate::bed::{Answer, Bed};

const SOURCES: &str = r#"
[sources.stripe]
provider = "stripe"
secrets = ["whsec_canary_stripe_secret"]

[sources.dropbox]
provider = "dropbox"
secrets = ["canary-dropbox"]

[sources.meta]
provider = "meta"
secrets = ["canary-meta-secret"]
verify_token = "canary-verify-token"

[sources.x]
provider = "x"
secrets = ["canary-x-secret"]

[sources.trello]
provider = "trello"
secrets = ["canary-trello"]
public_url = "https://hooks.example.com/in/trello"

[sources.events]
provider = "cloudevents"
secrets = ["canary-cloudevents"]

[sources.slack]
provider = "slack"
secrets = ["canary-slack-secret"]

[sources.xero]
provider = "xero"
secrets = ["canary-xero-secret"]

[sources.sharepoint]
provider = "microsoft-sharepoint"
secrets = ["canary-sharepoint"]
"#;

/// What nobody is told.
const SECRET_WORD: &str = "canary";

async fn ask(bed: &Bed, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = format!("{method} {target} HTTP/1.1\r\nhost: hooks.example.com\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("content-length: 0\r\n\r\n");
    let mut stream = bed.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    match method {
        "HEAD" => Answer::read_head(&mut stream).await,
        _ => Answer::read(&mut stream).await.expect("an answer"),
    }
}

#[tokio::test]
async fn questions_are_answered_by_every_method() {
    let bed = Bed::configured(SOURCES).await;
    let get = ask(&bed, "GET", "/in/dropbox?challenge=abc123", &[]).await;
    assert_eq!((get.status, get.body.as_str()), (200, "abc123"));
    assert_eq!(get.header("content-type"), Some("text/plain"));
    assert_eq!(get.header("x-content-type-options"), Some("nosniff"));

    let crc = ask(&bed, "GET", "/in/x?crc_token=challenge", &[]).await;
    assert_eq!((crc.status, crc.header("content-type")), (200, Some("application/json")));
    assert!(crc.body.starts_with(r#"{"response_token":"sha256="#), "{crc:?}");

    let head = ask(&bed, "HEAD", "/in/trello", &[]).await;
    assert_eq!((head.status, head.header("content-type")), (200, None));

    let origin = [("webhook-request-origin", "eventemitter.example.com")];
    let options = ask(&bed, "OPTIONS", "/in/events", &origin).await;
    assert_eq!((options.status, options.body.as_str()), (200, ""));
    assert_eq!(options.header("webhook-allowed-origin"), Some("eventemitter.example.com"));

    let target = "/in/sharepoint?validationtoken=4d1b9f4e-1f3c";
    let post = ask(&bed, "POST", target, &[]).await;
    assert_eq!((post.status, post.body.as_str()), (200, "4d1b9f4e-1f3c"));
    assert_eq!(post.header("content-type"), Some("text/plain"));

    for source in ["dropbox", "x", "trello", "events", "sharepoint"] {
        let line = format!(r#"oncebox_received_total{{source="{source}",outcome="handshake"}}"#);
        assert_eq!(bed.metric(&line).await, 1.0, "{source}");
    }
    bed.assert_untouched("a question").await;
}

#[tokio::test]
async fn a_token_that_only_the_provider_knows_is_checked() {
    let bed = Bed::configured(SOURCES).await;
    let target = |token: &str| {
        format!("/in/meta?hub.mode=subscribe&hub.verify_token={token}&hub.challenge=1158201444")
    };
    let right = ask(&bed, "GET", &target("canary-verify-token"), &[]).await;
    assert_eq!((right.status, right.body.as_str()), (200, "1158201444"));
    for wrong in ["", "canary-verify-toke", "canary-verify-token2", "canary-meta-secret"] {
        let answer = ask(&bed, "GET", &target(wrong), &[]).await;
        answer.assert_rejected(wrong);
        assert!(!answer.body.contains("1158201444"));
    }
    let rejected = r#"oncebox_rejections_total{source="meta",reason="no_handshake"}"#;
    assert_eq!(bed.metric(rejected).await, 4.0);
}

#[tokio::test]
async fn guessing_such_a_token_is_slowed_down() {
    let bed =
        Bed::configured(&format!("[limits]\nfailed_signatures_per_minute = 3\n{SOURCES}")).await;
    let target = "/in/meta?hub.mode=subscribe&hub.verify_token=guess&hub.challenge=1";
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(ask(&bed, "GET", target, &[]).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429]);
}

#[tokio::test]
async fn other_methods_are_refused_with_those_that_are_not() {
    let bed = Bed::configured(SOURCES).await;
    for (source, methods, allowed) in [
        ("stripe", &["GET", "OPTIONS", "PUT", "DELETE", "PATCH"][..], "POST"),
        ("dropbox", &["OPTIONS", "PUT", "DELETE"], "POST, GET"),
        ("trello", &["GET", "OPTIONS", "PUT"], "POST, HEAD"),
        ("events", &["GET", "PUT"], "POST, OPTIONS"),
        ("nobody", &["GET", "OPTIONS"], "POST"),
    ] {
        for method in methods {
            let answer = ask(&bed, method, &format!("/in/{source}?challenge=x"), &[]).await;
            assert_eq!(answer.status, 405, "{method} {source}");
            assert_eq!(answer.header("allow"), Some(allowed), "{method} {source}");
        }
    }
}

/// What is reflected is never a page, never long, and cannot end a header.
#[tokio::test]
async fn hostile_challenges_get_nothing_out_of_us() {
    let bed = Bed::configured(SOURCES).await;
    let page = "/in/dropbox?challenge=%3Cscript%3Ealert(1)%3C/script%3E";
    let answer = ask(&bed, "GET", page, &[("accept", "text/html")]).await;
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));

    let longest = format!("/in/dropbox?challenge={}", "x".repeat(1024));
    assert_eq!(ask(&bed, "GET", &longest, &[]).await.body.len(), 1024);
    for (what, target) in [
        ("too long", format!("/in/dropbox?challenge={}", "x".repeat(1025))),
        ("empty", "/in/dropbox?challenge=".to_owned()),
        ("twice", "/in/dropbox?challenge=a&challenge=b".to_owned()),
        ("a line break", "/in/dropbox?challenge=a%0d%0aset-cookie:%20b=c".to_owned()),
        ("missing", "/in/dropbox".to_owned()),
        ("an event to be signed", "/in/x?crc_token=%7B%22id%22%3A1%7D".to_owned()),
        ("much to be signed", format!("/in/x?crc_token={}", "x".repeat(129))),
    ] {
        let answer = ask(&bed, "GET", &target, &[]).await;
        answer.assert_rejected(what);
        assert!(!answer.body.contains(SECRET_WORD));
    }
    let origin = "evil.example.com\u{7f}";
    let options = ask(&bed, "OPTIONS", "/in/events", &[("webhook-request-origin", origin)]).await;
    assert_eq!(options.header("webhook-allowed-origin"), None);
    bed.assert_untouched("a hostile question").await;
}

/// eBay asks for a hash of the URL that it was given, not of what is left of it behind a proxy.
#[tokio::test]
async fn a_hash_of_the_url_is_one_of_all_of_it() {
    let pair = generate_pair(catalogue::find("ebay").unwrap()).unwrap();
    let token = "canary-verification-token-of-ours";
    for (more, url) in [
        ("", "https://hooks.example.com/in/ebay"),
        ("public_url = \"https://example.com/ebay\"", "https://example.com/ebay"),
    ] {
        let source = format!(
            "[sources.ebay]\nprovider = \"ebay\"\nsecrets = [{:?}]\n\
             verification_token = \"{token}\"\n{more}\n",
            pair.public
        );
        let bed = Bed::configured(&source).await;
        let answer = ask(&bed, "GET", "/in/ebay?challenge_code=a8628072-3d33", &[]).await;
        let hash = Sha256::digest(format!("a8628072-3d33{token}{url}"));
        let expected = format!(r#"{{"challengeResponse":"{}"}}"#, hex::encode(hash));
        assert_eq!((answer.status, answer.body), (200, expected));
    }
}

/// A signed question is answered only if the signature is right.
#[tokio::test]
async fn a_signed_question_needs_its_signature() {
    let bed = Bed::configured(SOURCES).await;
    let slack = catalogue::find("slack").unwrap();
    assert!(slack.handshakes.iter().all(|handshake| handshake.signed));
    let draft = Draft {
        method: "POST".into(),
        url: "/in/slack".into(),
        headers: http::HeaderMap::new(),
        body: br#"{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595"}"#.to_vec(),
    };
    let at = oncebox::clock::Clock::now(&*bed.clock);
    let signed = |secret: &str| sign(slack, &Secret::new(secret), draft.clone(), at).unwrap();
    for (what, question) in [("forged", signed("another-secret")), ("unsigned", draft.clone())] {
        let answer = bed.post("slack", &question).await;
        answer.assert_rejected(what);
        assert!(!answer.body.contains("3eZbrw1aBm2rZgRNFdxV2595"), "{what}");
    }
    let answer = bed.post("slack", &signed("canary-slack-secret")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("3eZbrw1aBm2rZgRNFdxV2595"), "{answer:?}");
    bed.assert_untouched("a question").await;
}

/// Xero tries the URL with an empty batch, rightly and wrongly signed, and wants no body at all.
#[tokio::test]
async fn a_silent_provider_hears_nothing_even_if_it_is_refused() {
    let bed = Bed::configured(SOURCES).await;
    let draft = Draft {
        method: "POST".into(),
        url: "/in/xero".into(),
        headers: http::HeaderMap::new(),
        body: br#"{"events":[],"firstEventSequence":0,"lastEventSequence":0}"#.to_vec(),
    };
    let xero = catalogue::find("xero").unwrap();
    let at = oncebox::clock::Clock::now(&*bed.clock);
    let signed = |secret: &str| sign(xero, &Secret::new(secret), draft.clone(), at).unwrap();
    let right = bed.post("xero", &signed("canary-xero-secret")).await;
    assert_eq!((right.status, right.body.as_str()), (200, ""));
    let wrong = bed.post("xero", &signed("another-secret")).await;
    assert_eq!((wrong.status, wrong.body.as_str()), (401, ""));
    assert_eq!(wrong.header("content-type"), None);
    assert_eq!(bed.metric(r#"oncebox_received_total{source="xero",outcome="ignored"}"#).await, 1.0);
    bed.assert_untouched("an intent to receive").await;
}
