//! SNS: messages of our topics, and certificates and subscriptions of Amazon only.

use http::HeaderMap;
use jiff::SignedDuration;
use oncebox_verify::{
    BadSecret, Draft, Keyring, Request, Roots, Secret, WantedForm, WantedKey, generate_pair, sign,
    subscription_url, verify, verify_with, wanted_key,
};
use serde_json::{Value, json};

use crate::authority::{Wanted, certificate};
use crate::bed::{code, find, now, parse, rsa_pem, settings};

const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:orders";
pub(crate) const SNS_URL: &str =
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0000.pem";

pub(crate) fn wanted_sns() -> WantedKey {
    let form = WantedForm::Certificate { subject_end: ".amazonaws.com".into(), chained: false };
    WantedKey { url: SNS_URL.to_owned(), kid: None, form }
}

/// What SNS would send, signed with a key of ours.
fn sns(private: &str, body: &Value) -> Draft {
    let draft = Draft {
        method: "POST".to_owned(),
        url: "https://example.com/in/sns".to_owned(),
        headers: HeaderMap::new(),
        body: body.to_string().into_bytes(),
    };
    sign(find("aws-sns"), &Secret::new(private), draft, now()).unwrap()
}

fn notification() -> Value {
    json!({"Type": "Notification", "MessageId": "m1", "Message": "hello", "TopicArn": TOPIC})
}

fn edited(draft: &Draft, edit: impl FnOnce(&mut Value)) -> Draft {
    let mut body: Value = serde_json::from_slice(&draft.body).unwrap();
    edit(&mut body);
    Draft { body: body.to_string().into_bytes(), ..draft.clone() }
}

fn topic_keyring() -> Keyring {
    Keyring::with_settings(find("aws-sns"), vec![], settings(&[("topic_arn", TOPIC)])).unwrap()
}

#[test]
fn sns_is_checked_with_what_was_fetched() {
    let (key, sns_name) =
        (rsa_pem(), Wanted { common_name: "sns.amazonaws.com", ..Wanted::default() });
    let made = certificate(&sns_name, &key);
    let draft = sns(&key, &notification());
    let (provider, keyring) = (find("aws-sns"), topic_keyring());
    let request = draft.request();
    let wanted = wanted_key(provider, &keyring, &request).unwrap().unwrap();
    assert_eq!(wanted, wanted_sns());
    assert_eq!(code(verify(provider, &keyring, &request, now())), "key_not_fetched");

    let fetched = parse(&wanted, &made.leaf, &Roots::default()).unwrap();
    let check = |draft: &Draft, at| {
        verify_with(provider, &keyring, Some(&fetched), &draft.request(), at).map(|v| v.signed_at)
    };
    assert_eq!(check(&draft, now()), Ok(Some(now())));
    let changed = edited(&draft, |body| body["Message"] = "bye".into());
    assert_eq!(code(check(&changed, now())), "signature_mismatch");
    // What was kept for too long.
    let late = now() + SignedDuration::from_hours(24 * 365 * 10);
    assert_eq!(code(check(&draft, late)), "certificate_not_valid");
    // What was fetched from elsewhere.
    let elsewhere = WantedKey { url: SNS_URL.replace("0000", "0001"), ..wanted_sns() };
    let other = parse(&elsewhere, &made.leaf, &Roots::default()).unwrap();
    let verdict = verify_with(provider, &keyring, Some(&other), &request, now());
    assert_eq!(code(verdict), "key_not_fetched");
    // A certificate with a key of another kind.
    let curve = generate_pair(find("circle")).unwrap();
    let curve = certificate(&sns_name, curve.private_pem());
    let curve = parse(&wanted, &curve.leaf, &Roots::default()).unwrap();
    let verdict = verify_with(provider, &keyring, Some(&curve), &request, now());
    assert_eq!(code(verdict), "signature_mismatch");
}

#[test]
fn sns_must_be_of_our_topic() {
    let provider = find("aws-sns");
    assert_eq!(
        Keyring::new(provider, vec![]).unwrap_err(),
        BadSecret::NoSetting { key: "topic_arn".into() }
    );
    let pair = generate_pair(find("wise")).unwrap();
    let draft = sns(pair.private_pem(), &notification());
    let check = |topics: &str| {
        let said = settings(&[("topic_arn", topics), ("public_key", &pair.public)]);
        let keyring = Keyring::with_settings(provider, vec![], said).unwrap();
        verify(provider, &keyring, &draft.request(), now()).map_err(|rejection| rejection.code())
    };
    assert!(check(TOPIC).is_ok());
    assert!(check(&format!("arn:other, {TOPIC}")).is_ok());
    for other in ["arn:aws:sns:us-east-1:999999999999:orders", "orders", &TOPIC[..TOPIC.len() - 1]]
    {
        assert_eq!(check(other), Err("wrong_topic"), "{other}");
    }
}

#[test]
fn sns_certificates_come_from_sns() {
    let draft = sns(&rsa_pem(), &notification());
    let (provider, keyring) = (find("aws-sns"), topic_keyring());
    let refused = |url: &str| {
        let draft = edited(&draft, |body| body["SigningCertURL"] = url.into());
        let verdict = wanted_key(provider, &keyring, &draft.request());
        let verdict = verdict.map_err(|rejection| rejection.code());
        assert_eq!(verdict, Err("untrusted_certificate_url"), "{url}");
        let verdict = verify(provider, &keyring, &draft.request(), now());
        assert_eq!(code(verdict), "untrusted_certificate_url", "{url}");
    };
    for url in [
        "http://sns.us-east-1.amazonaws.com/x.pem",
        "HTTPS://sns.us-east-1.amazonaws.com/x.pem",
        "https://sns.us-east-1.amazonaws.com.evil.example/x.pem",
        "https://evil.example/sns.us-east-1.amazonaws.com/x.pem",
        "https://evil.example?sns.us-east-1.amazonaws.com/x.pem",
        "https://evil.example#@sns.us-east-1.amazonaws.com/x.pem",
        "https://evil.example\\@sns.us-east-1.amazonaws.com/x.pem",
        "https://user@sns.us-east-1.amazonaws.com/x.pem",
        "https://user:pass@sns.us-east-1.amazonaws.com/x.pem",
        "https://sns.us-east-1.amazonaws.com@evil.example/x.pem",
        "https://sns.us-east-1.amazonaws.com:8443/x.pem",
        "https://sns.us-east-1.amazonaws.com:443:443/x.pem",
        "https://sns.us-east-1.amazonaws.com./x.pem",
        "https://sns.us-east-1.amazonaws.com/x.pem.txt",
        "https://sns.us-east-1.amazonaws.com/x.pem?a=b",
        "https://sns.us-east-1.amazonaws.com/x.pem#a.pem",
        "https://sns.us-east-1.amazonaws.com/../x.pem",
        "https://sns.us-east-1.amazonaws.com",
        "https://sns.a.us-east-1.amazonaws.com/x.pem",
        "https://sns.amazonaws.com/x.pem",
        "https://sns..amazonaws.com/x.pem",
        "https://snsx.us-east-1.amazonaws.com/x.pem",
        "https://xsns.us-east-1.amazonaws.com/x.pem",
        "https://sns.us-east-1.amazonaws.comx/x.pem",
        "https://sns.us-east-1xamazonaws.com/x.pem",
        "https://sns.us_east_1.amazonaws.com/x.pem",
        "https://sns.s3.amazonaws.com/x.pem",
        "https://sns.s3-us-west-2.amazonaws.com/x.pem",
        "https://sns.us-east-1.amazonaws.com.cn.evil.example/x.pem",
        "https://sns.us-east-1.amazonaws.com/ x.pem",
        "https://sns.us-east-1.amazonaws.com/x\n.pem",
        "https://\u{ff53}ns.us-east-1.amazonaws.com/x.pem",
        "//sns.us-east-1.amazonaws.com/x.pem",
        "",
        &format!("https://sns.us-east-1.amazonaws.com/{}.pem", "a".repeat(1100)),
    ] {
        refused(url);
    }
    let missing =
        edited(&draft, |body| drop(body.as_object_mut().unwrap().remove("SigningCertURL")));
    assert!(wanted_key(provider, &keyring, &missing.request()).is_err());
    for url in [
        "https://sns.cn-north-1.amazonaws.com.cn/x.pem",
        "https://sns.us-gov-west-1.amazonaws.com/a/b.pem",
        "https://sns.us-east-1.amazonaws.com:443/x.pem",
    ] {
        let draft = edited(&draft, |body| body["SigningCertURL"] = url.into());
        let wanted = wanted_key(provider, &keyring, &draft.request()).unwrap().unwrap();
        assert_eq!(wanted.url, url);
    }
}

/// The same signed text must not be read as other values.
#[test]
fn sns_values_are_one_line_each() {
    let pair = generate_pair(find("wise")).unwrap();
    let provider = find("aws-sns");
    let keyring = Keyring::new(provider, vec![Secret::new(pair.public.clone())]).unwrap();
    let check = |draft: &Draft| verify(provider, &keyring, &draft.request(), now());
    let lines = json!({"Type": "Notification", "MessageId": "m1", "TopicArn": TOPIC,
        "Message": "a\nMessageId\nm2", "Timestamp": "2025-10-09T08:53:20.000Z"});
    let draft = sns(pair.private_pem(), &lines);
    check(&draft).unwrap();
    let moved = edited(&draft, |body| {
        body["Message"] = "a".into();
        body["MessageId"] = "m2\nMessageId\nm1".into();
    });
    assert_eq!(code(check(&moved)), "unreadable_body");
    for name in ["Type", "MessageId", "TopicArn", "Timestamp", "Message", "Signature"] {
        let missing = edited(&draft, |body| drop(body.as_object_mut().unwrap().remove(name)));
        assert_eq!(code(check(&missing)), "unreadable_body", "{name}");
        let other = edited(&draft, |body| body[name] = json!({"a": 1}));
        assert!(check(&other).is_err(), "{name}");
    }
    for version in ["0", "3", "", "01", "sha256"] {
        let other = edited(&draft, |body| body["SignatureVersion"] = version.into());
        assert_eq!(code(check(&other)), "unknown_algorithm", "{version}");
    }
    // Signed with SHA-256, said to be SHA-1.
    let weaker = edited(&draft, |body| body["SignatureVersion"] = "1".into());
    assert_eq!(code(check(&weaker)), "signature_mismatch");
    let said = settings(&[("signature_version", "2"), ("public_key", &pair.public)]);
    let strict = Keyring::with_settings(provider, vec![], said).unwrap();
    let verdict = verify(provider, &strict, &weaker.request(), now());
    assert_eq!(code(verdict), "unknown_algorithm");
    // A value that is there twice.
    let text = String::from_utf8(draft.body.clone()).unwrap();
    let twice = text.replacen('{', r#"{"MessageId":"m9","#, 1);
    assert!(check(&Draft { body: twice.into_bytes(), ..draft.clone() }).is_err());
}

#[test]
fn subscriptions_are_confirmed_at_sns_only() {
    let provider = find("aws-sns");
    let url = |url: &str, kind: &str| {
        let body = json!({"Type": kind, "MessageId": "m", "Message": "", "Token": "t",
            "TopicArn": TOPIC, "SubscribeURL": url})
        .to_string();
        let headers = HeaderMap::new();
        let request =
            Request { method: "POST", url: "/", headers: &headers, body: body.as_bytes() };
        subscription_url(provider, &request)
    };
    let right = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=t";
    assert_eq!(url(right, "SubscriptionConfirmation").as_deref(), Some(right));
    assert_eq!(url(right, "Notification"), None);
    assert_eq!(url(right, "UnsubscribeConfirmation"), None);
    for wrong in [
        "http://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
        "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
        "https://sns.us-east-1.amazonaws.com/?Action=DeleteTopic",
        "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Action=DeleteTopic",
        "https://sns.us-east-1.amazonaws.com/x?Action=ConfirmSubscription",
        "https://sns.us-east-1.amazonaws.com?Action=ConfirmSubscription",
        "https://sns.us-east-1.amazonaws.com.evil.example/?Action=ConfirmSubscription",
        "https://a@sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
        "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&a=\n",
        "https://169.254.169.254/?Action=ConfirmSubscription",
        "",
    ] {
        assert_eq!(url(wrong, "SubscriptionConfirmation"), None, "{wrong}");
    }
}
