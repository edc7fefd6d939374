//! Tokens: what a forger tries, what a provider may send, and where keys come from.

use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::HeaderMap;
use jiff::Timestamp;
use oncebox_verify::{
    BadSecret, FetchedKey, Keyring, Provider, Rejection, Request, Roots, SampleEvent, Secret,
    Settings, Verified, WantedKey, catalogue, generate_pair, identify, sample, sign_with,
    verify_with, wanted_key,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const NOW: i64 = 1_760_000_000;
const BODY: &[u8] = br#"{"event":{"id":"e1","type":"user.create"}}"#;
const HEADER: &str = "x-fusionauth-signature-jwt";
const SHARED: &str = "a shared secret of some length";

static RSA: LazyLock<RsaKeyPair> =
    LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
static P256: LazyLock<EcdsaKeyPair> =
    LazyLock::new(|| EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap());
static P384: LazyLock<EcdsaKeyPair> =
    LazyLock::new(|| EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap());

/// What signs a token.
#[derive(Clone)]
enum Signer {
    Hs256(Vec<u8>),
    Rs256,
    Rs512,
    Es256,
    Es384,
}

impl Signer {
    fn shared() -> Signer {
        Signer::Hs256(SHARED.as_bytes().to_vec())
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let rng = SystemRandom::new();
        let rsa = |padding| {
            let mut signature = vec![0; RSA.public_modulus_len()];
            RSA.sign(padding, &rng, message, &mut signature).unwrap();
            signature
        };
        match self {
            Signer::Hs256(key) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
            }
            Signer::Rs256 => rsa(&RSA_PKCS1_SHA256),
            Signer::Rs512 => rsa(&RSA_PKCS1_SHA512),
            Signer::Es256 => P256.sign(&rng, message).unwrap().as_ref().to_vec(),
            Signer::Es384 => P384.sign(&rng, message).unwrap().as_ref().to_vec(),
        }
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A token with exactly these two texts.
fn raw(header: &str, payload: &str, signer: &Signer) -> String {
    let message = format!("{}.{}", encode(header), encode(payload));
    let signature = encode(signer.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn claims() -> String {
    let hash = STANDARD.encode(Sha256::digest(BODY));
    json!({ "request_body_sha256": hash }).to_string()
}

fn token(alg: &str, signer: &Signer) -> String {
    raw(&json!({ "alg": alg }).to_string(), &claims(), signer)
}

fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn keyring(secret: &str) -> Keyring {
    Keyring::new(find("fusionauth"), vec![Secret::new(secret)]).unwrap()
}

fn check(keyring: &Keyring, token: &str) -> Result<Verified, Rejection> {
    check_at(find("fusionauth"), keyring, None, HEADER, token, NOW)
}

fn check_at(
    provider: &Provider,
    keyring: &Keyring,
    fetched: Option<&FetchedKey>,
    header: &'static str,
    token: &str,
    now: i64,
) -> Result<Verified, Rejection> {
    let mut headers = HeaderMap::new();
    headers.insert(header, token.parse().unwrap());
    let url = "https://example.com/in/hook";
    let request = Request { method: "POST", url, headers: &headers, body: BODY };
    let now = Timestamp::from_second(now).unwrap();
    verify_with(provider, keyring, fetched, &request, now)
}

#[track_caller]
fn refused(keyring: &Keyring, token: &str) -> &'static str {
    check(keyring, token).expect_err(token).code()
}

fn spki(der: &PublicKeyX509Der<'_>) -> Vec<u8> {
    der.as_ref().to_vec()
}

fn rsa_der() -> Vec<u8> {
    spki(&RSA.public_key().as_der().unwrap())
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

fn rsa_pem() -> String {
    pem(&rsa_der())
}

fn p256_jwk(kid: &str) -> Value {
    let point = P256.public_key().as_ref();
    let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
    json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": kid, "use": "sig" })
}

#[test]
fn every_kind_of_key_checks_its_own_tokens() {
    let p384 = pem(&spki(&P384.public_key().as_der().unwrap()));
    let cases = [
        (SHARED.to_owned(), "HS256", Signer::shared()),
        (rsa_pem(), "RS256", Signer::Rs256),
        (rsa_pem(), "RS512", Signer::Rs512),
        (rsa_pem().replace('\n', "\\n"), "RS256", Signer::Rs256),
        (STANDARD.encode(rsa_der()), "RS256", Signer::Rs256),
        (p256_jwk("a").to_string(), "ES256", Signer::Es256),
        (json!([p256_jwk("a")]).to_string(), "ES256", Signer::Es256),
        (json!({ "keys": [p256_jwk("a")] }).to_string(), "ES256", Signer::Es256),
        (p384, "ES384", Signer::Es384),
        (json!({ "kty": "oct", "k": encode(SHARED) }).to_string(), "HS256", Signer::shared()),
    ];
    for (secret, alg, signer) in cases {
        let keyring = keyring(&secret);
        assert!(check(&keyring, &token(alg, &signer)).is_ok(), "{alg}: {secret}");
    }
}

#[test]
fn no_algorithm_is_no_signature() {
    for keyring in [keyring(SHARED), keyring(&rsa_pem())] {
        for alg in ["none", "None", "NONE", "nOnE", "", " none", "null"] {
            let header = encode(json!({ "alg": alg }).to_string());
            let bare = format!("{header}.{}.", encode(claims()));
            assert_eq!(refused(&keyring, &bare), "malformed_signature");
            let signed = token(alg, &Signer::shared());
            assert_eq!(refused(&keyring, &signed), "unknown_algorithm");
        }
        for header in [r#"{"alg":null}"#, r#"{"alg":["HS256"]}"#, r#"{"typ":"JWT"}"#, "{}"] {
            assert_eq!(refused(&keyring, &raw(header, &claims(), &Signer::shared())), "bad_token");
        }
    }
}

/// Whoever has the public key, which is everybody, must not sign with it.
#[test]
fn a_public_key_is_no_shared_secret() {
    let keyring = keyring(&rsa_pem());
    let texts = [
        rsa_pem().into_bytes(),
        rsa_pem().trim().as_bytes().to_vec(),
        STANDARD.encode(rsa_der()).into_bytes(),
        rsa_der(),
        RSA.public_key().as_ref().to_vec(),
        vec![],
    ];
    for text in texts {
        let forged = token("HS256", &Signer::Hs256(text));
        assert_eq!(refused(&keyring, &forged), "unknown_algorithm");
    }
    // Nor where only shared secrets are known.
    let wrapped = json!({ "key": p256_jwk("a") }).to_string();
    let many = json!(vec![p256_jwk("a"); 40]).to_string();
    let one = p256_jwk("a").to_string();
    let publics = [rsa_pem(), STANDARD.encode(rsa_der()), one, wrapped, many];
    for public in &publics {
        let error = Keyring::new(find("netlify"), vec![Secret::new(public)]).unwrap_err();
        assert_eq!(error, BadSecret::NotShared { number: 0 }, "{public}");
    }
    // Nor what a setting says: it is public, too.
    let oct = json!({ "kty": "oct", "k": encode(SHARED) }).to_string();
    for text in [SHARED, &oct, "-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----"] {
        for key in ["public_key", "jwk"] {
            let made = Keyring::with_settings(find("fusionauth"), vec![], settings(&[(key, text)]));
            assert_eq!(made.unwrap_err().code(), "bad_setting", "{text}");
        }
    }
}

#[test]
fn an_algorithm_needs_its_own_kind_of_key() {
    let rsa = keyring(&rsa_pem());
    for (alg, signer) in [
        ("ES256", Signer::Es256),
        ("HS256", Signer::shared()),
        ("ES256", Signer::Rs256),
        ("PS256", Signer::Rs256),
        ("rs256", Signer::Rs256),
        ("RS1", Signer::Rs256),
        ("EdDSA", Signer::Rs256),
    ] {
        assert_eq!(refused(&rsa, &token(alg, &signer)), "unknown_algorithm", "{alg}");
    }
    // The right kind, but not what was signed with.
    assert_eq!(refused(&rsa, &token("RS256", &Signer::Rs512)), "signature_mismatch");
    assert_eq!(refused(&rsa, &token("RS256", &Signer::Es256)), "signature_mismatch");
    let p256 = keyring(&p256_jwk("a").to_string());
    assert_eq!(refused(&p256, &token("ES256", &Signer::Es384)), "signature_mismatch");
    assert_eq!(refused(&p256, &token("ES384", &Signer::Es384)), "unknown_algorithm");
    // An entry may have fewer algorithms than its key.
    let netlify = Keyring::new(find("netlify"), vec![Secret::new(SHARED)]).unwrap();
    let hs512 = json!({ "alg": "HS512" }).to_string();
    let other = raw(&hs512, &claims(), &Signer::shared());
    let verdict = check_at(find("netlify"), &netlify, None, "x-webhook-signature", &other, NOW);
    assert_eq!(verdict.unwrap_err().code(), "unknown_algorithm");
}

#[test]
fn an_ecdsa_signature_has_one_form() {
    let keyring = keyring(&p256_jwk("a").to_string());
    let message = format!("{}.{}", encode(r#"{"alg":"ES256"}"#), encode(claims()));
    for signature in [vec![0; 64], vec![0xff; 64], vec![0; 1], vec![1; 63], vec![1; 65]] {
        assert_eq!(
            refused(&keyring, &format!("{message}.{}", encode(signature))),
            "signature_mismatch"
        );
    }
}

#[test]
fn a_token_is_written_in_one_way() {
    let keyring = keyring(SHARED);
    let good = token("HS256", &Signer::shared());
    assert!(check(&keyring, &good).is_ok());
    let [header, payload, signature] = &good.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let texts = [
        format!("{good}."),
        format!(".{good}"),
        format!("{good}.{signature}"),
        format!("{header}.{payload}"),
        format!("{header}..{signature}"),
        format!(".{payload}.{signature}"),
        format!("{header}.{payload}."),
        format!("{header}.{payload}.{signature}="),
        format!("{header}=.{payload}.{signature}"),
        format!("{header}.{payload}=.{signature}"),
        format!("{header}.{payload}.{signature} "),
        format!("{header} .{payload}.{signature}"),
        format!("{good},{good}"),
        "..".to_owned(),
        "a.b.c".to_owned(),
        json!({ "payload": payload, "protected": header, "signature": signature }).to_string(),
    ];
    for text in texts {
        assert!(check(&keyring, &text).is_err(), "{text}");
    }
    // `+` and `/` belong to another alphabet, and the last character has bits to spare.
    let spare = (b'A'..=b'z').map(char::from).filter(char::is_ascii_alphanumeric);
    for last in spare.filter(|last| !signature.ends_with(*last)).chain(['+', '/']) {
        let cut = &good[..good.len() - 1];
        assert!(check(&keyring, &format!("{cut}{last}")).is_err());
    }
}

#[test]
fn headers_that_ask_for_more_are_refused() {
    let keyring = keyring(SHARED);
    for header in [
        r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
        r#"{"alg":"HS256","b64":false}"#,
        r#"{"alg":"HS256","b64":"false"}"#,
        r#"{"alg":"HS256","crit":[]}"#,
        r#"{"alg":"HS256","crit":["exp"],"exp":1}"#,
        r#"{"alg":"HS256","crit":null}"#,
        r#"{"alg":"none","alg":"HS256"}"#,
        r#"{"alg":"HS256","alg":"HS256"}"#,
        r#"{"alg":"HS256","a\u006cg":"none"}"#,
        r#"{"alg":"HS256","x":1,"x":2}"#,
        r#"{"alg":"HS256","kid":7}"#,
        r#"[{"alg":"HS256"}]"#,
        r#"{"alg":"HS256"}{}"#,
        r#"{"alg":"HS256""#,
        "HS256",
        "",
    ] {
        assert_eq!(refused(&keyring, &raw(header, &claims(), &Signer::shared())), "bad_token");
    }
    // What a key set or a key in the header says is not even read.
    for header in [
        json!({ "alg": "ES256", "jwk": p256_jwk("a") }),
        json!({ "alg": "RS256", "x5c": [STANDARD.encode(rsa_der())] }),
        json!({ "alg": "RS256", "jku": "https://evil.example/jwks.json" }),
    ] {
        for signer in [Signer::Es256, Signer::Rs256] {
            let forged = raw(&header.to_string(), &claims(), &signer);
            assert_eq!(refused(&keyring, &forged), "unknown_algorithm");
        }
    }
    assert!(
        check(&keyring, &raw(r#"{"alg":"HS256","b64":true}"#, &claims(), &Signer::shared()))
            .is_ok()
    );
}

#[test]
fn giant_tokens_are_not_read() {
    let keyring = keyring(SHARED);
    let pad = "x".repeat(2000);
    let header = json!({ "alg": "HS256", "pad": pad }).to_string();
    assert_eq!(refused(&keyring, &raw(&header, &claims(), &Signer::shared())), "bad_token");
    let deep = format!(r#"{{"alg":"HS256","x":{}{}}}"#, "[".repeat(700), "]".repeat(700));
    assert_eq!(refused(&keyring, &raw(&deep, &claims(), &Signer::shared())), "bad_token");
    let long = json!({ "request_body_sha256": pad.repeat(3) }).to_string();
    let long = raw(r#"{"alg":"HS256"}"#, &long, &Signer::shared());
    assert_eq!(refused(&keyring, &long), "malformed_header");
}

#[test]
fn a_flipped_bit_is_refused_wherever_it_is() {
    for (secret, alg, signer) in [
        (SHARED.to_owned(), "HS256", Signer::shared()),
        (rsa_pem(), "RS256", Signer::Rs256),
        (p256_jwk("a").to_string(), "ES256", Signer::Es256),
    ] {
        let keyring = keyring(&secret);
        let good = token(alg, &signer).into_bytes();
        for place in 0..good.len() {
            for bit in 0..7 {
                let mut forged = good.clone();
                forged[place] ^= 1 << bit;
                let Ok(value) = http::HeaderValue::from_bytes(&forged) else { continue };
                let mut headers = HeaderMap::new();
                headers.insert(HEADER, value);
                let request = Request { method: "POST", url: "/", headers: &headers, body: BODY };
                let now = Timestamp::from_second(NOW).unwrap();
                let verdict = verify_with(find("fusionauth"), &keyring, None, &request, now);
                assert!(verdict.is_err(), "{alg} {place} {bit}");
            }
        }
    }
}

#[test]
fn a_key_id_only_picks_among_our_keys() {
    let with_kid = |kid: &str| {
        let header = json!({ "alg": "ES256", "kid": kid }).to_string();
        raw(&header, &claims(), &Signer::Es256)
    };
    let named = keyring(&p256_jwk("a").to_string());
    assert!(check(&named, &with_kid("a")).is_ok());
    assert!(check(&named, &token("ES256", &Signer::Es256)).is_ok());
    for kid in ["b", "", "A", "../../a", "a\u{0}", "' or 1=1 --"] {
        assert_eq!(refused(&named, &with_kid(kid)), "unknown_key");
    }
    // A key in PEM has no name, so it may have any.
    let unnamed = keyring(&pem(&spki(&P256.public_key().as_der().unwrap())));
    assert!(check(&unnamed, &with_kid("b")).is_ok());
    // Of two keys with one name, the one that made the signature counts.
    let mut other = p256_jwk("a");
    (other["x"], other["y"]) = {
        let other = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let point = other.public_key().as_ref();
        (encode(&point[1..33]).into(), encode(&point[33..]).into())
    };
    let twins = keyring(&json!([other, p256_jwk("a")]).to_string());
    assert!(check(&twins, &with_kid("a")).is_ok());
    let only_other = keyring(&json!([other, p256_jwk("b")]).to_string());
    assert_eq!(refused(&only_other, &with_kid("a")), "signature_mismatch");
    // A key that Plaid retired.
    let mut retired = p256_jwk("a");
    retired["expired_at"] = Value::from(NOW);
    assert_eq!(refused(&keyring(&retired.to_string()), &with_kid("a")), "unknown_key");
}

#[test]
fn keys_that_fit_nothing_are_refused_loudly() {
    let mut encrypts = p256_jwk("a");
    encrypts["use"] = "enc".into();
    let mut off_curve = p256_jwk("a");
    off_curve["y"] = off_curve["x"].clone();
    let mut short = p256_jwk("a");
    short["x"] = encode([1; 31]).into();
    let mut other_curve = p256_jwk("a");
    other_curve["crv"] = "P-384".into();
    let mut other_alg = p256_jwk("a");
    other_alg["alg"] = "ES384".into();
    let weak = json!({ "kty": "OKP", "crv": "Ed25519", "x": encode([0; 32]) });
    let small = json!({ "kty": "RSA", "n": encode([0xff; 64]), "e": "AQAB" });
    let empty = json!({ "kty": "oct", "k": "" });
    let unknown = json!({ "kty": "AKP" });
    for jwk in [encrypts, off_curve, short, other_curve, other_alg, weak, small, empty, unknown] {
        let made = Keyring::new(find("fusionauth"), vec![Secret::new(jwk.to_string())]);
        assert_eq!(made.err().map(|bad| bad.code()), Some("not_key"), "{jwk}");
    }
    let made = Keyring::new(find("gong"), vec![Secret::new("just some words")]);
    assert_eq!(made.unwrap_err().code(), "not_key");
}

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

fn any_token() -> impl Strategy<Value = String> {
    let header = prop_oneof![
        Just(r#"{"alg":"HS256"}"#.to_owned()),
        Just(r#"{"alg":"RS256","kid":"a"}"#.to_owned()),
        Just(r#"{"alg":"ES256"}"#.to_owned()),
        "\\{(\"(alg|kid|crit|b64|jku)\":(\"[A-Za-z0-9]{0,6}\"|[0-9]{1,3}|\\[\\]),?){0,4}\\}",
        ".{0,40}",
    ];
    let payload = prop_oneof![Just(claims()), ".{0,60}", Just(String::new())];
    let signature = proptest::collection::vec(any::<u8>(), 0..300);
    let parts = (header, payload, signature);
    prop_oneof![
        parts.prop_map(|(h, p, s)| format!("{}.{}.{}", encode(h), encode(p), encode(s))),
        "[A-Za-z0-9_.=-]{0,200}",
        "(Bearer |JWT )?[!-~]{0,80}",
    ]
}

proptest! {
    #[test]
    fn no_random_token_panics_or_verifies(token in any_token(), entry in 0_usize..4) {
        let (name, header) = [
            ("fusionauth", HEADER),
            ("google-pubsub", "authorization"),
            ("truelayer", "tl-signature"),
            ("fireblocks", "fireblocks-webhook-signature"),
        ][entry];
        static KEYRINGS: LazyLock<Vec<Keyring>> = LazyLock::new(|| {
            let said = settings(&[
                ("audience", "a"), ("service_account", "b"), ("public_key", &rsa_pem()),
            ]);
            let make = |name: &str, said: &Settings| {
                Keyring::with_settings(find(name), vec![], said.clone()).unwrap()
            };
            vec![
                keyring(SHARED),
                make("google-pubsub", &said),
                Keyring::new(find("truelayer"), vec![]).unwrap(),
                make("fireblocks", &said),
            ]
        });
        let mut headers = HeaderMap::new();
        let Ok(value) = token.parse() else { return Ok(()) };
        headers.insert(header, value);
        let request = Request { method: "POST", url: "/", headers: &headers, body: BODY };
        let now = Timestamp::from_second(NOW).unwrap();
        let provider = find(name);
        let _ = wanted_key(provider, &KEYRINGS[entry], &request);
        prop_assert!(verify_with(provider, &KEYRINGS[entry], None, &request, now).is_err());
    }

    #[test]
    fn no_random_key_panics(
        begin in "(-----BEGIN [A-Z ]{0,12}-----)?",
        middle in "[A-Za-z0-9+/=\\n{}\":,]{0,300}",
        end in "(-----END [A-Z ]{0,12}-----)?",
    ) {
        let text = format!("{begin}{middle}{end}");
        for name in ["fusionauth", "gong", "netlify"] {
            let _ = Keyring::new(find(name), vec![Secret::new(text.clone())]);
        }
    }
}

/// What `oncebox send` makes is what the provider would: it verifies, and has the id it was given.
#[test]
fn what_we_sign_for_an_entry_verifies() {
    let at = Timestamp::from_second(NOW).unwrap();
    let mut signed = 0;
    for provider in catalogue::ALL.iter() {
        let [oncebox_verify::Scheme::Jws(jws)] = provider.schemes.as_ref() else { continue };
        let has_hmac = jws.algorithms.iter().any(|algorithm| algorithm.is_hmac());
        let (private, public) = match has_hmac {
            true => (Secret::new(SHARED), Secret::new(SHARED)),
            false => {
                let pair = generate_pair(provider).unwrap_or_else(|| panic!("{}", provider.name));
                (pair.private, Secret::new(pair.public))
            }
        };
        let said: Settings = provider
            .settings
            .iter()
            .filter(|setting| setting.needed)
            .map(|setting| {
                (setting.key.to_string(), format!("https://example.com/{}", setting.key))
            })
            .collect();
        let signs = Keyring::with_settings(provider, vec![private], said.clone()).unwrap();
        let event = SampleEvent { id: "evt_1", event_type: "", at, object: None };
        let draft = sign_with(provider, &signs, sample(provider, &event), at);
        let draft = draft.unwrap_or_else(|error| panic!("{}: {error}", provider.name));
        let checks = Keyring::with_settings(provider, vec![public], said).unwrap();
        let request = draft.request();
        let verdict = verify_with(provider, &checks, None, &request, at);
        assert!(verdict.is_ok(), "{}: {verdict:?}", provider.name);
        let event = identify(provider, &request);
        assert!(event.is_ok(), "{}: {event:?}", provider.name);
        signed += 1;
    }
    assert!(signed >= 14, "{signed}");
}
