//! Requests that were not believed, where a source keeps some.

use oncebox::limits::{REJECTED_BODY, REJECTED_PENDING};
use oncebox::receipt::decode_headers;
use oncebox::store::{Rejected, RejectedFilter};

use crate::bed::{Bed, Place, STRIPE, TOKEN};

const SOURCES: &str = r#"
[sources.stripe]
provider = "stripe"
secrets = ["whsec_canary_stripe_secret"]
keep_rejected = 3

[sources.github]
provider = "github"
secrets = ["canary-github-secret"]

[sources.token]
provider = "token"
secrets = ["canary-token-secret"]
keep_rejected = 3
"#;

/// What is kept, newest first, once everything noted is written.
async fn kept(bed: &Bed) -> Vec<Rejected> {
    let inbox = &bed.server.inbox;
    inbox.activity.flush(&*inbox.store).await;
    let all = RejectedFilter::since(jiff::Timestamp::UNIX_EPOCH);
    let mut kept = Vec::new();
    for rejected in inbox.store.rejected_list(&all).await.unwrap() {
        kept.push(inbox.store.rejected(rejected.id).await.unwrap().unwrap());
    }
    kept
}

#[tokio::test]
async fn the_last_of_each_reason_are_kept_on_either_store() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let bed = Bed::on_place(place, SOURCES).await;
        for number in 0..5 {
            let mut forged = bed.event("evt_1");
            forged.body = format!("forged {number}").into();
            assert_eq!(bed.post("stripe", &forged).await.status, 401);
        }
        let mut unsigned = bed.event("evt_1");
        unsigned.headers.remove("stripe-signature");
        bed.post("stripe", &unsigned).await;
        // Not asked for: nothing is kept.
        bed.post("github", &unsigned).await;
        // Not a webhook.
        bed.raw(b"PUT /in/stripe HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;

        let kept = kept(&bed).await;
        let reasons: Vec<&str> = kept.iter().map(|kept| kept.rejection.reason.as_str()).collect();
        let mismatch = "signature_mismatch";
        assert_eq!(reasons, ["missing_header", mismatch, mismatch, mismatch]);
        assert_eq!(kept[1].body, b"forged 4");
        assert_eq!((kept[1].method.as_str(), kept[1].url.as_str()), ("POST", "/in/stripe"));
        assert_eq!(kept[1].sender, "127.0.0.1");
        let headers = decode_headers(&kept[1].headers);
        assert!(headers.iter().any(|(name, _)| name == "stripe-signature"), "{headers:?}");
        bed.assert_untouched("a rejected request").await;

        let activity = bed.server.inbox.store.activity().await.unwrap();
        let stripe = activity.iter().find(|activity| activity.source == kept[0].source).unwrap();
        let last = stripe.rejection.as_ref().unwrap();
        assert_eq!(last.reason, mismatch, "the usual reason, not that of a stray request");
        bed.server.stop().await;
    }
}

/// A sender who is not believed has little written, whatever it sends.
#[tokio::test]
async fn what_is_kept_is_bounded() {
    let more = SOURCES.replace("keep_rejected = 3", "keep_rejected = 1000");
    let bed = Bed::configured(&more).await;
    let mut forged = bed.event("evt_1");
    forged.body = vec![b'x'; REJECTED_BODY + 1];
    for _ in 0..50 {
        bed.post("stripe", &forged).await;
    }
    let kept = kept(&bed).await;
    assert!(!kept.is_empty());
    assert!(kept.iter().all(|kept| kept.body.len() == REJECTED_BODY));
    assert!(kept.iter().all(|kept| kept.body_bytes == REJECTED_BODY as u64 + 1));
    let bytes: usize = kept.iter().map(|kept| kept.body.len() + kept.headers.len()).sum();
    assert!(bytes <= REJECTED_PENDING, "{bytes}");
}

#[tokio::test]
async fn credentials_are_kept_as_fingerprints() {
    let bed = Bed::configured(SOURCES).await;
    let mut wrong = bed.signed("token", TOKEN, "evt_1");
    wrong.headers.insert("x-webhook-token", "canary-wrong-token".parse().unwrap());
    wrong.headers.insert("authorization", "Bearer canary-bearer".parse().unwrap());
    // A credential of another provider, sent to the wrong source.
    wrong.headers.insert("x-gitlab-token", "canary-gitlab".parse().unwrap());
    bed.post("token", &wrong).await;
    let mut forged = bed.signed("stripe", STRIPE, "evt_2");
    forged.body.push(b' ');
    forged.headers.insert("cookie", "session=canary-cookie".parse().unwrap());
    bed.post("stripe", &forged).await;
    let kept = kept(&bed).await;
    assert_eq!(kept.len(), 2);
    for kept in kept {
        let text = String::from_utf8_lossy(&kept.headers).into_owned();
        assert!(text.contains("fingerprint:") && !text.contains("canary"), "{text}");
    }
}

/// A secret that a provider tells outside of a pairing window is not kept, whichever source it
/// comes to.
#[tokio::test]
async fn a_secret_told_in_a_handshake_is_not_kept() {
    let pairing = r#"
[store]
master_secret = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"

[sources.notion]
provider = "notion"
keep_rejected = 3

[sources.asana]
provider = "asana"
keep_rejected = 3
"#;
    let bed = Bed::configured(&format!("{pairing}{SOURCES}")).await;
    let mut told = bed.event("evt_1");
    told.headers.clear();
    told.headers.insert("x-hook-secret", "canary-hook-secret".parse().unwrap());
    told.body = br#"{"verification_token":"canary-verification-token"}"#.to_vec();
    for source in ["notion", "asana", "stripe"] {
        bed.post(source, &told).await.assert_rejected(source);
    }
    let mut other = told.clone();
    other.body = br#"{"verification":"of something else"}"#.to_vec();
    bed.post("notion", &other).await.assert_rejected("notion");
    let kept = kept(&bed).await;
    assert_eq!(kept.len(), 4);
    assert_eq!(kept[0].body, other.body);
    for kept in &kept {
        let text = [&kept.headers[..], &kept.body].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("fingerprint:") && !text.contains("canary"), "{text}");
        assert_ne!(kept.body_bytes, 0);
    }
}

/// What is refused before its body is kept with the length that it announced.
#[tokio::test]
async fn the_length_of_a_body_that_is_not_read_is_kept() {
    let bed = Bed::configured(SOURCES).await;
    let mut unsigned = bed.event("evt_1");
    unsigned.headers.remove("stripe-signature");
    unsigned.body = vec![b'x'; 100 << 10];
    bed.post("stripe", &unsigned).await.assert_rejected("unsigned");
    let kept = kept(&bed).await;
    assert_eq!((kept[0].body.len(), kept[0].body_bytes), (0, 100 << 10));
}

/// The secret in use is the one that verified last, and never the secret itself.
#[tokio::test]
async fn the_secret_in_use_is_known() {
    let two = r#"
[sources.stripe]
provider = "stripe"
secrets = ["whsec_canary_new_secret", "whsec_canary_stripe_secret"]
"#;
    let bed = Bed::configured(two).await;
    let used = async || {
        let inbox = &bed.server.inbox;
        inbox.activity.flush(&*inbox.store).await;
        inbox.store.activity().await.unwrap()[0].secret.clone().unwrap().0
    };
    let print = |secret: &str| oncebox_verify::Secret::new(secret).fingerprint();
    bed.post("stripe", &bed.event("evt_1")).await;
    assert_eq!(used().await, print(STRIPE));
    bed.clock.advance_secs(1);
    bed.post("stripe", &bed.signed("stripe", "whsec_canary_new_secret", "evt_2")).await;
    assert_eq!(used().await, print("whsec_canary_new_secret"));
}
