//! Keys: what each kind checks, and what it must never be taken for.

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncebox_verify::{BadSecret, Keyring, Secret};
use serde_json::{Value, json};

use crate::bed::{NOW, SHARED, check, check_at, find, keyring, refused, settings};
use crate::signer::{
    P256, P384, RSA, Signer, claims, encode, p256_jwk, pem, raw, rsa_der, rsa_pem, spki, token,
};

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
