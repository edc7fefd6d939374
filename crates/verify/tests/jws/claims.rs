//! Claims: what a token says, and what it is compared with.

use oncebox_verify::{BadSecret, Keyring, Rejection, Verified};
use serde_json::{Value, json};

use crate::bed::{NOW, check_at, find, settings};
use crate::signer::{Signer, raw, rsa_pem};

/// A token of Pub/Sub with these claims beside the usual ones.
fn pubsub(changes: &Value) -> Result<Verified, Rejection> {
    let mut claims = json!({
        "iss": "https://accounts.google.com", "aud": "https://example.com/push", "sub": "1",
        "email": "pusher@proj.iam.gserviceaccount.com", "email_verified": true,
        "iat": NOW - 100, "exp": NOW + 3500,
    });
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    let token = raw(r#"{"alg":"RS256"}"#, &claims.to_string(), &Signer::Rs256);
    pubsub_token(&token)
}

fn pubsub_token(token: &str) -> Result<Verified, Rejection> {
    let provider = find("google-pubsub");
    let said = settings(&[
        ("audience", "https://example.com/push"),
        ("service_account", "pusher@proj.iam.gserviceaccount.com"),
        ("public_key", &rsa_pem()),
    ]);
    let keyring = Keyring::with_settings(provider, vec![], said).unwrap();
    check_at(provider, &keyring, None, "authorization", &format!("Bearer {token}"), NOW)
}

#[test]
fn every_claim_must_hold() {
    assert!(pubsub(&json!({})).is_ok());
    assert!(pubsub(&json!({ "aud": ["x", "https://example.com/push"] })).is_ok());
    assert!(pubsub(&json!({ "exp": NOW - 59, "nbf": NOW + 60 })).is_ok());
    assert!(pubsub(&json!({ "exp": NOW as f64 + 0.5 })).is_ok());
    for (changes, code) in [
        (json!({ "aud": "https://example.com/push/" }), "bad_audience"),
        (json!({ "aud": [] }), "bad_audience"),
        (json!({ "aud": [["https://example.com/push"]] }), "bad_audience"),
        (json!({ "aud": { "0": "https://example.com/push" } }), "bad_audience"),
        (json!({ "aud": null }), "missing_claim"),
        (json!({ "iss": "accounts.google.com.evil.example" }), "bad_issuer"),
        (json!({ "iss": ["https://accounts.google.com"] }), "bad_issuer"),
        (json!({ "email": "Pusher@proj.iam.gserviceaccount.com" }), "bad_subject"),
        (json!({ "email": null }), "missing_claim"),
        (json!({ "email_verified": "true" }), "bad_claim"),
        (json!({ "email_verified": false }), "bad_claim"),
        (json!({ "exp": null }), "missing_claim"),
        (json!({ "exp": NOW - 60 }), "token_expired"),
        (json!({ "exp": 0 }), "token_expired"),
        (json!({ "exp": -1 }), "token_expired"),
        (json!({ "nbf": NOW + 61 }), "token_not_yet_valid"),
        (json!({ "exp": (NOW + 100).to_string() }), "bad_timestamp"),
        (json!({ "exp": true }), "bad_timestamp"),
        (json!({ "exp": 1e300 }), "bad_timestamp"),
        (json!({ "nbf": u64::MAX }), "bad_timestamp"),
        (json!({ "iat": i64::MIN }), "bad_timestamp"),
        // What is wrong besides the time is told first.
        (json!({ "exp": 0, "aud": "x" }), "bad_audience"),
    ] {
        assert_eq!(pubsub(&changes).unwrap_err().code(), code, "{changes}");
    }
}

#[test]
fn claims_are_one_object_with_each_key_once() {
    for payload in [
        r#"{"aud":"x","aud":"https://example.com/push"}"#,
        r#"{"aud":"https://example.com/push","\u0061ud":"x"}"#,
        r#"["aud"]"#,
        r#""aud""#,
        "{}x",
        "{",
        "",
        "\u{feff}{}",
    ] {
        let token = raw(r#"{"alg":"RS256"}"#, payload, &Signer::Rs256);
        assert_eq!(pubsub_token(&token).unwrap_err().code(), "bad_token", "{payload}");
    }
}

/// Without what tells our tokens from everybody's, none is believed, however well signed.
#[test]
fn settings_that_claims_are_compared_with_are_needed() {
    let provider = find("google-pubsub");
    for missing in ["audience", "service_account"] {
        let mut said = settings(&[("audience", "a"), ("service_account", "b")]);
        said.remove(missing);
        let made = Keyring::with_settings(provider, vec![], said);
        assert_eq!(made.unwrap_err().code(), "no_setting");
    }
    let fusionauth = Keyring::new(find("fusionauth"), vec![]);
    assert_eq!(fusionauth.unwrap_err(), BadSecret::None);
}
