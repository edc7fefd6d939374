//! Tokens as text: written in one way, and changed nowhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use jiff::Timestamp;
use oncebox_verify::{Request, verify_with};
use serde_json::json;

use crate::bed::{BODY, HEADER, NOW, SHARED, check, find, keyring, refused};
use crate::signer::{Signer, claims, encode, p256_jwk, raw, rsa_der, rsa_pem, token};

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
