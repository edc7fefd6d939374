//! Keys that are fetched: how often, and what a sender hears while there is none.

use std::sync::Arc;

use oncebox_testkit::wait;
use oncebox_verify::Draft;

use super::shelf::{Shelf, Signer, key_set, sources};
use crate::bed::{Bed, configuration};

const SNS: &str = "[sources.sns]\nprovider = \"aws-sns\"\n\
                   topic_arn = \"arn:aws:sns:us-east-1:123456789012:orders\"\n";

async fn bed(shelf: &Arc<Shelf>) -> Bed {
    Bed::with_keys(&sources(&Signer::new("pinned")), shelf.options()).await
}

#[tokio::test]
async fn a_key_is_fetched_once_and_kept() {
    let (shelf, signer) = (Arc::new(Shelf::default()), Signer::new("a"));
    shelf.serve(key_set(&[&signer]));
    let bed = bed(&shelf).await;
    for number in 0..5 {
        let answer = bed.post("auth", &signer.signed(&format!("evt_{number}"))).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    assert_eq!(shelf.asked(), ["https://keys.example.com/.well-known/jwks.json"]);
    assert_eq!(bed.metric(r#"oncebox_keys_total{source="auth",outcome="fetched"}"#).await, 1.0);
    assert_eq!(bed.metric(r#"oncebox_keys_total{source="auth",outcome="cached"}"#).await, 4.0);
}

#[tokio::test]
async fn a_key_in_the_configuration_is_never_fetched() {
    let shelf = Arc::new(Shelf::default());
    let bed = bed(&shelf).await;
    assert_eq!(bed.post("pinned", &Signer::new("pinned").signed("evt_1")).await.status, 202);
    bed.post("pinned", &Signer::new("a").signed("evt_2")).await.assert_rejected("another key");
    assert_eq!(shelf.asked(), Vec::<String>::new());
}

/// A reload reads settings anew and forgets no key that was fetched.
#[tokio::test]
async fn settings_are_reloaded_and_keys_stay() {
    let (shelf, signer) = (Arc::new(Shelf::default()), Signer::new("a"));
    shelf.serve(key_set(&[&signer]));
    let bed = bed(&shelf).await;
    assert_eq!(bed.post("auth", &signer.signed("evt_1")).await.status, 202);
    bed.server.reload(configuration(&sources(&Signer::new("other")))).await.unwrap();
    assert_eq!(bed.post("auth", &signer.signed("evt_2")).await.status, 202);
    assert_eq!(shelf.asked().len(), 1);
    assert_eq!(bed.post("pinned", &Signer::new("other").signed("evt_3")).await.status, 202);
    bed.post("pinned", &Signer::new("pinned").signed("evt_4")).await.assert_rejected("the old key");
    let wrong = sources(&Signer::new("x")).replace("https://keys", "http://keys");
    assert!(bed.server.reload(configuration(&wrong)).await.is_err());
    assert_eq!(bed.post("auth", &signer.signed("evt_5")).await.status, 202);
}

#[tokio::test]
async fn whoever_comes_at_the_same_time_shares_one_fetch() {
    let (shelf, signer) = (Shelf::closed(), Signer::new("a"));
    shelf.serve(key_set(&[&signer]));
    let bed = Arc::new(bed(&shelf).await);
    let posts: Vec<_> = (0..8)
        .map(|number| {
            let (bed, draft) = (bed.clone(), signer.signed(&format!("evt_{number}")));
            tokio::spawn(async move { bed.post("auth", &draft).await.status })
        })
        .collect();
    let joined = r#"oncebox_keys_total{source="auth",outcome="coalesced"}"#;
    let waiting = std::time::Instant::now();
    while bed.metric(joined).await < 7.0 {
        assert!(waiting.elapsed() < wait::DEADLINE, "seven wait for the eighth");
        tokio::task::yield_now().await;
    }
    shelf.open();
    for post in posts {
        assert_eq!(post.await.unwrap(), 202);
    }
    assert_eq!(shelf.asked().len(), 1);
}

#[tokio::test]
async fn a_new_key_of_the_provider_is_found_and_a_made_up_one_is_not_looked_for_again() {
    let shelf = Arc::new(Shelf::default());
    let [old, new, forged] = ["old", "new", "forged"].map(Signer::new);
    shelf.serve(key_set(&[&old]));
    shelf.serve(key_set(&[&old, &new]));
    let bed = bed(&shelf).await;
    assert_eq!(bed.post("auth", &old.signed("evt_1")).await.status, 202);
    assert_eq!(bed.post("auth", &new.signed("evt_2")).await.status, 202);
    assert_eq!(shelf.asked().len(), 2);
    for _ in 0..5 {
        // It may be newer than what was fetched a moment ago.
        let answer = bed.post("auth", &forged.signed("evt_3")).await;
        answer.assert_unavailable("a key nobody has");
    }
    assert_eq!(shelf.asked().len(), 2, "an attacker makes nobody ask the provider");
    assert_eq!(bed.stored().await.len(), 2);
}

/// A set that was fetched for this very request lacks the key: the provider has none such. After
/// that it may have one, and whoever goes on about it is told to stop.
#[tokio::test]
async fn a_made_up_key_is_refused_and_whoever_names_many_is_slowed_down() {
    let shelf = Arc::new(Shelf::default());
    let [known, forged] = ["known", "forged"].map(Signer::new);
    shelf.serve(key_set(&[&known]));
    let bed = limited(&shelf).await;
    assert_eq!(bed.post("auth", &known.signed("evt_1")).await.status, 202);
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(bed.post("auth", &forged.signed("evt_2")).await.status);
    }
    assert_eq!(statuses, [401, 503, 503, 429, 429]);
    assert_eq!(shelf.asked().len(), 2);
}

/// Failed signatures of an address are held against nothing that verifies.
#[tokio::test]
async fn a_genuine_event_passes_an_address_over_its_limit() {
    let (shelf, signer) = (Arc::new(Shelf::default()), Signer::new("a"));
    shelf.serve(key_set(&[&signer]));
    let bed = limited(&shelf).await;
    let mut forged = signer.signed("evt_1");
    forged.body.push(b' ');
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(bed.post("auth", &forged).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429]);
    assert_eq!(bed.post("auth", &signer.signed("evt_1")).await.status, 202);
    assert_eq!(shelf.asked().len(), 1);
}

/// A server that bears three failed signatures a minute.
async fn limited(shelf: &Arc<Shelf>) -> Bed {
    let sources = sources(&Signer::new("pinned"));
    let limited = format!("[limits]\nfailed_signatures_per_minute = 3\n{sources}");
    Bed::with_keys(&limited, shelf.options()).await
}

#[tokio::test]
async fn without_a_key_the_sender_is_asked_to_come_back() {
    let (shelf, signer) = (Arc::new(Shelf::default()), Signer::new("a"));
    shelf.fail();
    let bed = bed(&shelf).await;
    for _ in 0..3 {
        bed.post("auth", &signer.signed("evt_1")).await.assert_unavailable("the provider is down");
    }
    assert_eq!(shelf.asked().len(), 1, "a server that is down is left alone for a moment");
    bed.assert_untouched("a request without a key").await;
    let unavailable = r#"oncebox_unavailable_total{source="auth",reason="key_unavailable"}"#;
    assert_eq!(bed.metric(unavailable).await, 3.0);
    assert_eq!(bed.metric(r#"oncebox_keys_total{source="auth",outcome="failed"}"#).await, 1.0);
    assert_eq!(bed.metric(r#"oncebox_keys_total{source="auth",outcome="refused"}"#).await, 2.0);
}

/// The URL of a certificate is the sender's word, even among the provider's own.
#[tokio::test]
async fn an_address_names_few_places_that_have_no_key() {
    let shelf = Arc::new(Shelf::default());
    let bed = behind_proxy(&shelf).await;
    for number in 0..20 {
        let answer = bed.post("sns", &from("192.0.2.1", number)).await;
        answer.assert_unavailable("no certificate is there");
    }
    assert_eq!(shelf.asked().len(), 5);
    bed.post("sns", &from("192.0.2.2", 20)).await.assert_unavailable("another address");
    assert_eq!(shelf.asked().len(), 6, "others are not kept from theirs");
    let refused = r#"oncebox_keys_total{source="sns",outcome="refused"}"#;
    assert_eq!(bed.metric(refused).await, 15.0);
}

/// Who is turned away because all are busy has used up a try as well.
#[tokio::test]
async fn whoever_is_turned_away_pays_for_it() {
    let shelf = Shelf::closed();
    let bed = Arc::new(behind_proxy(&shelf).await);
    let waiting: Vec<_> = (0..16)
        .map(|number| {
            let (bed, draft) = (bed.clone(), from(&format!("192.0.2.{number}"), number));
            tokio::spawn(async move { bed.post("sns", &draft).await.status })
        })
        .collect();
    let began = std::time::Instant::now();
    while shelf.asked().len() < 16 {
        assert!(began.elapsed() < wait::DEADLINE, "sixteen places are asked");
        tokio::task::yield_now().await;
    }
    for number in 100..105 {
        bed.post("sns", &from("192.0.2.100", number)).await.assert_unavailable("all are busy");
    }
    shelf.open();
    for answer in waiting {
        assert_eq!(answer.await.unwrap(), 503);
    }
    bed.post("sns", &from("192.0.2.100", 105)).await.assert_unavailable("no try is left");
    assert_eq!(shelf.asked().len(), 16);
    bed.post("sns", &from("192.0.2.101", 106)).await.assert_unavailable("another address");
    assert_eq!(shelf.asked().len(), 17);
}

/// A server whose senders are known by their addresses behind a proxy.
async fn behind_proxy(shelf: &Arc<Shelf>) -> Bed {
    let sns = format!("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n{SNS}");
    Bed::with_keys(&sns, shelf.options()).await
}

/// A notification from an address that names a certificate of its own.
fn from(address: &str, number: usize) -> Draft {
    let url = format!("https://sns.us-east-1.amazonaws.com/SimpleNotificationService-{number}.pem");
    let mut draft = notification(&url);
    draft.headers.insert("x-forwarded-for", address.parse().unwrap());
    draft
}

#[tokio::test]
async fn what_is_no_key_opens_nothing() {
    let signer = Signer::new("a");
    let long = format!("{{\"keys\":[{}]}}", "{},".repeat(100_000));
    for (what, body) in [
        ("a page", "<html>hello</html>".to_owned()),
        ("an empty set", r#"{"keys":[]}"#.to_owned()),
        ("nothing", String::new()),
        ("another document", "[1,2,3]".to_owned()),
        ("far too much", long),
    ] {
        let shelf = Arc::new(Shelf::default());
        shelf.serve(body);
        let bed = bed(&shelf).await;
        bed.post("auth", &signer.signed("evt_1")).await.assert_unavailable(what);
        bed.assert_untouched(what).await;
    }
}

/// The URL is the sender's word. Nobody goes there unless it is the provider's.
#[tokio::test]
async fn a_certificate_from_elsewhere_is_not_even_looked_at() {
    let shelf = Arc::new(Shelf::default());
    let bed = Bed::with_keys(SNS, shelf.options()).await;
    for url in [
        "https://evil.example.com/SimpleNotificationService-1.pem",
        "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com.evil.example.com/x.pem",
        "https://sns.us-east-1.amazonaws.com@evil.example.com/x.pem",
        "https://169.254.169.254/x.pem",
    ] {
        bed.post("sns", &notification(url)).await.assert_rejected(url);
    }
    assert_eq!(shelf.asked(), Vec::<String>::new());
    let genuine = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem";
    let answer = bed.post("sns", &notification(genuine)).await;
    answer.assert_unavailable("what is served there is no certificate");
    assert_eq!(shelf.asked(), [genuine]);
    bed.assert_untouched("a forged notification").await;
}

fn notification(url: &str) -> Draft {
    let body = serde_json::json!({
        "Type": "Notification",
        "MessageId": "evt_1",
        "TopicArn": "arn:aws:sns:us-east-1:123456789012:orders",
        "Message": "hello",
        "Timestamp": "2026-09-21T10:13:20.000Z",
        "SignatureVersion": "2",
        "Signature": "AAAA",
        "SigningCertURL": url,
    });
    let body = body.to_string().into_bytes();
    Draft { method: "POST".into(), url: "/".into(), headers: http::HeaderMap::new(), body }
}

/// A key that has proved a request is there after a restart, though its server is not: strangers
/// who keep us from asking keep no provider out. It is not good for ever.
#[tokio::test]
async fn a_key_that_proved_a_request_survives_a_restart() {
    let (shelf, signer) = (Arc::new(Shelf::default()), Signer::new("a"));
    shelf.serve(key_set(&[&signer]));
    let bed = bed(&shelf).await;
    let mut forged = signer.signed("evt_0");
    forged.body.push(b' ');
    bed.post("auth", &forged).await.assert_rejected("a forgery");
    let store = bed.server.inbox.store.clone();
    assert_eq!(store.published_keys().await.unwrap(), [], "it has proved nothing yet");
    assert_eq!(bed.post("auth", &signer.signed("evt_1")).await.status, 202);
    let began = std::time::Instant::now();
    while store.published_keys().await.unwrap().is_empty() {
        assert!(began.elapsed() < wait::DEADLINE, "the key is kept");
        tokio::task::yield_now().await;
    }
    drop(store);
    let down = Arc::new(Shelf::default());
    down.fail();
    let bed = bed.restarted_with_keys(60, down.options()).await;
    assert_eq!(bed.post("auth", &signer.signed("evt_2")).await.status, 202);
    assert_eq!(down.asked(), Vec::<String>::new(), "it is fresh, and not asked for");
    let bed = bed.restarted_with_keys(2 * 3600, down.options()).await;
    assert_eq!(bed.post("auth", &signer.signed("evt_3")).await.status, 202, "old, and good");
    let bed = bed.restarted_with_keys(2 * 86_400, down.options()).await;
    bed.post("auth", &signer.signed("evt_4")).await.assert_unavailable("not for ever");
}
