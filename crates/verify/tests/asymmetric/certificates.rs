//! Certificates and sets of keys, fetched or pinned: which are believed.

use oncebox_verify::{
    BadKey, BadSecret, FETCHED_BYTES_MAX, FetchedKey, Keyring, Roots, WantedForm, WantedKey,
    generate_pair,
};
use rcgen::ExtendedKeyUsagePurpose;
use serde_json::{Value, json};

use crate::authority::{Wanted, certificate};
use crate::bed::{base64, decode, find, now, parse, rsa_pem, settings};
use crate::paypal::wanted_paypal;
use crate::sns::{SNS_URL, wanted_sns};

#[test]
fn a_chain_leads_to_a_root_or_nowhere() {
    let key = rsa_pem();
    let good = certificate(&Wanted::default(), &key);
    assert_eq!(good.roots.len(), 1);
    let fetched = parse(&wanted_paypal(), &good.chain, &good.roots).unwrap();
    assert!(fetched.has(&wanted_paypal()) && !fetched.has(&wanted_sns()));
    assert_eq!(fetched.not_after(), Some("2030-01-01T00:00:00Z".parse().unwrap()));

    let unchained = |bytes: &str, roots: &Roots| {
        assert_eq!(parse(&wanted_paypal(), bytes, roots).unwrap_err(), BadKey::Unchained);
    };
    unchained(&good.leaf, &good.roots);
    unchained(&good.self_signed, &good.roots);
    unchained(&good.chain, &Roots::default());
    unchained(&good.chain, &certificate(&Wanted::default(), &key).roots);
    let (_, middle) = good.chain.split_once("-----END CERTIFICATE-----\n").unwrap();
    unchained(&format!("{}{middle}", good.self_signed), &good.roots);
    let mail = Wanted { usage: ExtendedKeyUsagePurpose::EmailProtection, ..Wanted::default() };
    let mail = certificate(&mail, &key);
    unchained(&mail.chain, &mail.roots);
}

#[test]
fn a_certificate_is_good_for_its_time_and_its_name() {
    let key = rsa_pem();
    let refused = |wanted: Wanted<'_>| {
        let made = certificate(&wanted, &key);
        parse(&wanted_paypal(), &made.chain, &made.roots).unwrap_err()
    };
    assert_eq!(refused(Wanted { years: (2020, 2025), ..Wanted::default() }), BadKey::Expired);
    assert_eq!(refused(Wanted { years: (2026, 2030), ..Wanted::default() }), BadKey::NotYetValid);
    for name in ["paypal.com", "evilpaypal.com", "paypal.com.evil.example", "x.paypal.co", ""] {
        let wanted = Wanted { common_name: name, ..Wanted::default() };
        assert_eq!(refused(wanted), BadKey::WrongSubject, "{name}");
    }
    let wanted = Wanted { common_name: "x", host: Some("evil.example"), ..Wanted::default() };
    assert_eq!(refused(wanted), BadKey::WrongSubject);
    for (name, host) in [("API.PayPal.COM", None), ("x", Some("api.paypal.com"))] {
        let made = certificate(&Wanted { common_name: name, host, ..Wanted::default() }, &key);
        parse(&wanted_paypal(), &made.chain, &made.roots).unwrap();
    }
}

#[test]
fn what_is_no_certificate_is_refused() {
    let good = certificate(&Wanted::default(), &rsa_pem());
    let refused =
        |bytes: &[u8]| FetchedKey::parse(&wanted_paypal(), bytes, &good.roots, now()).unwrap_err();
    let key = generate_pair(find("wise")).unwrap();
    for text in ["", "<html>", "{}", &key.public, key.private_pem()] {
        assert_eq!(refused(text.as_bytes()), BadKey::Unreadable, "{text}");
    }
    assert_eq!(refused(&[0xff; 64]), BadKey::Unreadable);
    assert_eq!(refused(format!("{}{}", key.public, good.chain).as_bytes()), BadKey::Unreadable);
    assert_eq!(refused(good.leaf.repeat(17).as_bytes()), BadKey::Unreadable);
    assert_eq!(refused(&vec![b'a'; FETCHED_BYTES_MAX + 1]), BadKey::TooLarge);
    for code in [BadKey::TooLarge, BadKey::Unreadable, BadKey::Unchained].map(|bad| bad.code()) {
        assert!(code.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    }
    // Cut or changed anywhere, it is refused and nothing panics.
    let body: String = good.leaf.lines().filter(|line| !line.starts_with('-')).collect();
    let der = decode(&body);
    let pem = |der: &[u8]| {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", base64(der))
    };
    let leaf_only = WantedKey {
        form: WantedForm::Certificate { subject_end: ".paypal.com".into(), chained: false },
        ..wanted_paypal()
    };
    for end in 0..der.len() {
        assert!(parse(&leaf_only, &pem(&der[..end]), &good.roots).is_err(), "{end}");
    }
    for place in 0..der.len() {
        let mut changed = der.clone();
        changed[place] ^= 0x41;
        let chain = good.chain.replacen(&good.leaf, &pem(&changed), 1);
        assert!(parse(&wanted_paypal(), &chain, &good.roots).is_err(), "{place}");
        let _ = parse(&leaf_only, &pem(&changed), &good.roots);
    }
}

#[test]
fn key_sets_are_bounded() {
    let wanted = |kid: &str| WantedKey {
        url: "https://keys.example/jwks".to_owned(),
        kid: Some(kid.to_owned()),
        form: WantedForm::KeySet,
    };
    let set = |count: usize| {
        let keys: Vec<Value> =
            (0..count).map(|n| json!({"kty": "OKP", "kid": format!("k{n}")})).collect();
        json!({ "keys": keys }).to_string()
    };
    let roots = Roots::default();
    let fetched = parse(&wanted("k1"), &set(2), &roots).unwrap();
    assert!(fetched.has(&wanted("k0")) && fetched.has(&wanted("k1")));
    assert!(!fetched.has(&wanted("k2")));
    assert_eq!(fetched.not_after(), None);
    for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[1]}"#, &set(0), &set(65)] {
        assert_eq!(parse(&wanted("k1"), text, &roots).unwrap_err(), BadKey::Unreadable, "{text}");
    }
}

#[test]
fn pinned_certificates_are_read_at_once() {
    let provider = find("aws-sns");
    let with = |text: &str| {
        let keyring = Keyring::with_settings(provider, vec![], settings(&[("certificates", text)]));
        keyring.map(|_| ()).map_err(|bad| bad.code())
    };
    let made = certificate(&Wanted::default(), &rsa_pem());
    assert_eq!(with(&json!({SNS_URL: made.leaf}).to_string()), Ok(()));
    let key = generate_pair(find("wise")).unwrap();
    for wrong in [
        "[]".to_owned(),
        "x".to_owned(),
        json!({SNS_URL: "x"}).to_string(),
        json!({SNS_URL: 1}).to_string(),
        json!({SNS_URL: key.public}).to_string(),
        json!({SNS_URL: made.leaf.replace("MII", "MIJ")}).to_string(),
    ] {
        assert_eq!(with(&wrong), Err("bad_setting"), "{wrong}");
    }
    let bad = settings(&[("public_key", "x")]);
    let keyring = Keyring::with_settings(provider, vec![], bad).map(|_| ());
    assert_eq!(keyring, Err(BadSecret::BadSetting { key: "public_key".into() }));
}
