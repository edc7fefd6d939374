//! Subscriptions of Amazon SNS: confirmed by whoever asked for it, and by nobody else.

use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncebox_server::config::{LogFormat, LogLevel};
use oncebox_testkit::wait;
use oncebox_verify::{Draft, Secret, catalogue, sign};
use serde_json::json;

use super::shelf::Shelf;
use crate::bed::Bed;
use crate::logs::Captured;

const CONFIRM: &str = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription\
                       &TopicArn=arn:aws:sns:us-east-1:123456789012:orders&Token=canary";

/// Signs as SNS does, with a key of our own.
struct Sns {
    private: Secret,
    public: String,
}

impl Sns {
    fn new() -> Self {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let private = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
        let private = STANDARD.encode(private.as_ref());
        let private = format!("-----BEGIN PRIVATE KEY-----\n{private}\n-----END PRIVATE KEY-----");
        let public = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key()).unwrap();
        Self { private: Secret::new(private), public: STANDARD.encode(public.as_ref()) }
    }

    fn source(&self, more: &str) -> String {
        format!(
            "[sources.sns]\nprovider = \"aws-sns\"\npublic_key = \"{}\"\n\
             topic_arn = \"arn:aws:sns:us-east-1:123456789012:orders\"\n{more}",
            self.public
        )
    }

    fn asks(&self, bed: &Bed, url: &str) -> Draft {
        let body = json!({
            "Type": "SubscriptionConfirmation",
            "MessageId": "evt_1",
            "Token": "canary",
            "TopicArn": "arn:aws:sns:us-east-1:123456789012:orders",
            "Message": "You have chosen to subscribe",
            "SubscribeURL": url,
        });
        let body = body.to_string().into_bytes();
        let headers = http::HeaderMap::new();
        let draft = Draft { method: "POST".into(), url: "/in/sns".into(), headers, body };
        let at = oncebox::clock::Clock::now(&*bed.clock);
        sign(catalogue::find("aws-sns").unwrap(), &self.private, draft, at).unwrap()
    }
}

#[tokio::test]
async fn a_subscription_is_confirmed_only_where_that_is_wanted() {
    let sns = Sns::new();
    for (more, visits) in [("confirm_subscriptions = true\n", 1), ("", 0)] {
        let shelf = Arc::new(Shelf::default());
        let bed = Bed::with_keys(&sns.source(more), shelf.options()).await;
        let answer = bed.post("sns", &sns.asks(&bed, CONFIRM)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let visited = shelf.clone();
        let waiting = move || {
            wait::until("the subscription is confirmed", || visited.asked().len() >= visits);
        };
        tokio::task::spawn_blocking(waiting).await.unwrap();
        assert_eq!(shelf.asked(), vec![CONFIRM; visits]);
        bed.assert_untouched("a subscription").await;
    }
}

#[tokio::test]
async fn nobody_is_sent_elsewhere_to_confirm() {
    let sns = Sns::new();
    let shelf = Arc::new(Shelf::default());
    let (logs, _guard) = Captured::start(LogFormat::Json, LogLevel::Warn);
    let bed = Bed::with_keys(&sns.source("confirm_subscriptions = true\n"), shelf.options()).await;
    let elsewhere = [
        "https://evil.example.com/?Action=ConfirmSubscription",
        "http://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
        "https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe",
        "https://169.254.169.254/?Action=ConfirmSubscription",
    ];
    for url in elsewhere {
        bed.post("sns", &sns.asks(&bed, url)).await;
    }
    let text = logs.text();
    let told = text.lines().filter(|line| line.contains("a subscription cannot be confirmed"));
    assert_eq!(told.count(), elsewhere.len(), "{text}");
    let mut forged = sns.asks(&bed, CONFIRM);
    let other = String::from_utf8(forged.body).unwrap().replace("canary", "forged");
    forged.body = other.into_bytes();
    bed.post("sns", &forged).await.assert_rejected("a forged subscription");
    assert_eq!(shelf.asked(), Vec::<String>::new());
}
