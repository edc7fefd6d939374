//! Signed requests recorded from official SDKs and documentation, or computed from
//! the documented schemes; `origin` says which.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::custom::{HmacSettings, TokenSettings};
use oncebox_verify::{BadSecret, Keyring, Provider, Request, Secret, catalogue, handshake, verify};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    id: String,
    provider: String,
    title: String,
    secret: String,
    method: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    body: String,
    body_encoding: String,
    now: i64,
    expect: String,
    reason: Option<String>,
    expect_response: Option<ExpectedReply>,
}

#[derive(Deserialize)]
struct ExpectedReply {
    status: u16,
    content_type: String,
    body: String,
}

/// Where our word for the reason is another than the vector's.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("gitlab-03", "wrong_token"),
    // A hex digest where base64 belongs has the wrong length; we say so.
    ("shopify-02", "malformed_signature"),
];

/// Entries without a vector of their own.
const WITHOUT_VECTOR: &[(&str, &str)] = &[
    ("anthropic", "the scheme of standard-webhooks, unchanged"),
    ("brex", "the scheme of svix, unchanged"),
    ("dodo-payments", "the scheme of standard-webhooks, unchanged"),
    ("hmac", "covered by generic-ts-body, which is made of its settings"),
    ("lithic", "the scheme of standard-webhooks, unchanged"),
    ("liveblocks", "the scheme of standard-webhooks, unchanged"),
    ("token", "covered by telegram, cloudflare-notifications and postmark, made of its settings"),
    ("whop", "the scheme of standard-webhooks, unchanged"),
];

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("vectors.json")).expect("the vectors are JSON")
}

/// The entry of that name, or one made of the settings a user would write.
fn provider(name: &str) -> Provider {
    let token = |header: &str, scheme: &str| TokenSettings {
        header: header.to_owned(),
        scheme: scheme.to_owned(),
        ..TokenSettings::default()
    };
    match name {
        "generic-ts-body" => {
            let timestamp_header = Some("X-Webhook-Timestamp".to_owned());
            HmacSettings { timestamp_header, ..HmacSettings::default() }.provider().unwrap()
        }
        "postmark" => token("Authorization", "basic").provider().unwrap(),
        "telegram" => token("X-Telegram-Bot-Api-Secret-Token", "token").provider().unwrap(),
        "cloudflare-notifications" => token("cf-webhook-auth", "token").provider().unwrap(),
        name => catalogue::find(name).unwrap_or_else(|| panic!("no provider {name}")).clone(),
    }
}

fn headers(vector: &Vector) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &vector.headers {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// What the vector gets from us: `valid`, or the code of the rejection.
fn verdict(vector: &Vector) -> Result<String, BadSecret> {
    let provider = provider(&vector.provider);
    let keyring = Keyring::new(&provider, vec![Secret::new(vector.secret.clone())])?;
    let body = match vector.body_encoding.as_str() {
        "base64" => STANDARD.decode(&vector.body).unwrap(),
        _ => vector.body.clone().into_bytes(),
    };
    let request = Request {
        method: vector.method.as_deref().unwrap_or("POST"),
        url: vector.url.as_deref().unwrap_or("/"),
        headers: &headers(vector),
        body: &body,
    };
    let now = Timestamp::from_second(vector.now).unwrap();
    let verdict = verify(&provider, &keyring, &request, now);
    if let (Ok(_), Some(expected)) = (&verdict, &vector.expect_response) {
        let reply = handshake(&provider, &request).expect("a handshake is answered");
        assert_eq!(
            (reply.status, reply.content_type, &reply.body),
            (expected.status, expected.content_type.as_str(), &expected.body),
            "{}",
            vector.id
        );
    }
    Ok(verdict.map_or_else(|rejection| rejection.code().to_owned(), |_| "valid".to_owned()))
}

#[test]
fn every_vector_behaves_as_it_says() {
    let mut failures = Vec::new();
    for vector in vectors() {
        let other_word = OTHER_WORDS.iter().find(|(id, _)| *id == vector.id).map(|(_, code)| *code);
        let expected = match vector.expect.as_str() {
            "valid" => "valid",
            _ => other_word.or(vector.reason.as_deref()).expect("an invalid vector has a reason"),
        };
        let got = verdict(&vector).unwrap_or_else(|bad| format!("bad secret: {bad}"));
        if got != expected {
            let Vector { id, title, .. } = vector;
            failures.push(format!("{id} ({title}): expected {expected}, got {got}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_entry_has_a_vector_or_a_reason() {
    let vectors = vectors();
    let covered: BTreeSet<&str> = vectors.iter().map(|vector| vector.provider.as_str()).collect();
    for provider in catalogue::ALL.iter() {
        let excused = WITHOUT_VECTOR.iter().any(|(name, _)| *name == provider.name);
        let has_vector = covered.contains(provider.name.as_ref());
        assert!(has_vector != excused, "{}: one vector, or one reason", provider.name);
    }
}
