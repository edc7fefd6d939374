//! Key sets: where they are fetched from, and what is believed of them.

use http::HeaderMap;
use jiff::Timestamp;
use oncebox_verify::{
    FetchedKey, Keyring, Provider, Rejection, Request, Roots, WantedKey, wanted_key,
};
use serde_json::{Value, json};

use crate::bed::{BODY, HEADER, NOW, SHARED, check_at, find, settings};
use crate::signer::{Signer, claims, encode, p256_jwk, raw};

/// What must be fetched for a token.
fn wanted(
    provider: &Provider,
    keyring: &Keyring,
    header: &'static str,
    token: &str,
) -> Result<Option<WantedKey>, Rejection> {
    let mut headers = HeaderMap::new();
    headers.insert(header, token.parse().unwrap());
    wanted_key(
        provider,
        keyring,
        &Request { method: "POST", url: "/", headers: &headers, body: BODY },
    )
}

fn parse(wanted: &WantedKey, set: &Value) -> FetchedKey {
    let now = Timestamp::from_second(NOW).unwrap();
    FetchedKey::parse(wanted, set.to_string().as_bytes(), &Roots::default(), now).unwrap()
}

#[test]
fn key_sets_come_from_https_only() {
    for url in [
        "http://auth.example.com/jwks.json",
        "https://user@auth.example.com/jwks.json",
        "https://auth.example.com:8443/jwks.json",
        "https://[::1]/jwks.json",
        "https://localhost/jwks.json",
        "https:///jwks.json",
        "https://auth.example.com/a b",
        "https://auth.example.com/#x",
        "file:///etc/passwd",
        "auth.example.com",
    ] {
        let said = settings(&[("jwks_url", url)]);
        let made = Keyring::with_settings(find("fusionauth"), vec![], said);
        assert_eq!(made.unwrap_err().code(), "bad_setting", "{url}");
    }
}

#[test]
fn a_key_set_is_fetched_and_its_keys_are_used() {
    const URL: &str = "https://auth.example.com/.well-known/jwks.json";
    let provider = find("fusionauth");
    let said = settings(&[("jwks_url", URL)]);
    let keyring = Keyring::with_settings(provider, vec![], said).unwrap();
    let good = raw(r#"{"alg":"ES256","kid":"a"}"#, &claims(), &Signer::Es256);
    let needed = wanted(provider, &keyring, HEADER, &good).unwrap().unwrap();
    assert_eq!((needed.url.as_str(), needed.kid.as_deref()), (URL, Some("a")));
    let verdict = |fetched, token: &str| check_at(provider, &keyring, fetched, HEADER, token, NOW);
    assert_eq!(verdict(None, &good), Err(Rejection::KeyNotFetched));

    let others =
        json!([{ "kty": "AKP", "kid": "a" }, { "kty": "oct", "kid": "a", "k": encode(SHARED) }]);
    let mut keys = others.as_array().unwrap().clone();
    keys.push(p256_jwk("a"));
    let set = parse(&needed, &json!({ "keys": keys }));
    assert!(set.has(&needed));
    assert!(verdict(Some(&set), &good).is_ok());
    // Anybody can read a key set, so nothing in it is a shared secret.
    let forged = raw(r#"{"alg":"HS256","kid":"a"}"#, &claims(), &Signer::shared());
    assert_eq!(verdict(Some(&set), &forged).unwrap_err().code(), "unknown_algorithm");
    assert!(wanted(provider, &keyring, HEADER, &forged).is_err());

    let rotated = raw(r#"{"alg":"ES256","kid":"b"}"#, &claims(), &Signer::Es256);
    let needed = wanted(provider, &keyring, HEADER, &rotated).unwrap().unwrap();
    assert!(!set.has(&needed));
    assert_eq!(verdict(Some(&set), &rotated), Err(Rejection::UnknownKey));
    // The set of somebody else is none.
    let elsewhere = WantedKey { url: "https://evil.example/jwks.json".to_owned(), ..needed };
    let elsewhere = parse(&elsewhere, &json!({ "keys": [p256_jwk("a")] }));
    assert_eq!(verdict(Some(&elsewhere), &good), Err(Rejection::KeyNotFetched));
}

#[test]
fn a_token_names_no_place_but_those_of_the_provider() {
    let provider = find("truelayer");
    let keyring = Keyring::new(provider, vec![]).unwrap();
    let place = |jku: &str| {
        let header = json!({ "alg": "ES512", "kid": "a", "jku": jku }).to_string();
        let token = format!("{}..{}", encode(header), encode([1; 132]));
        wanted(provider, &keyring, "tl-signature", &token).map(|wanted| wanted.unwrap().url)
    };
    for url in [
        "https://webhooks.truelayer.com/.well-known/jwks",
        "https://webhooks.truelayer-sandbox.com/.well-known/jwks",
    ] {
        assert_eq!(place(url), Ok(url.to_owned()));
    }
    for url in [
        "https://evil.example/.well-known/jwks",
        "http://webhooks.truelayer.com/.well-known/jwks",
        "https://webhooks.truelayer.com/.well-known/jwks?",
        "https://webhooks.truelayer.com@evil.example/.well-known/jwks",
        "",
    ] {
        assert_eq!(place(url).unwrap_err().code(), "bad_token", "{url}");
    }
    // Nothing is fetched for what could never be believed.
    for token in ["", "a.b.c", "..", "e30..AA"] {
        let wanted = wanted(provider, &keyring, "tl-signature", token);
        assert!(wanted.is_err(), "{token}");
    }
}
