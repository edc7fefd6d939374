//! Keys that a source is given: of which kind, and written in which ways.

use oncebox_verify::{
    BadSecret, CannotSign, Draft, Keyring, Provider, SampleEvent, Secret, generate_pair, identify,
    sample, sign, verify, wanted_key,
};
use rcgen::KeyPair as CertificateKey;
use serde_json::json;

use crate::authority::{Wanted, certificate};
use crate::bed::{base64, code, decode, find, now, settings, signed};

/// Made with OpenSSL: 1024 bits.
const SHORT_RSA: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCs41AzjLmBkpmLs2gzSPbjziEY
FSAz6yzc9lPRB/CH0iQ3VNnFpWjudtJ3qnx8qx8G+tgchKunUQWy+duvPMVAxMTj
FNtT92totjUkmC+kt9Pn8xoxolcTTRa6xLuGOpz/2keYFqWyz4Q3v3PKptNae5Be
X7RnKc/Hp0enF/rgBQIDAQAB
-----END PUBLIC KEY-----";

/// Every entry that is checked with a public key, and can be played.
fn played() -> Vec<&'static Provider> {
    let names = [
        "sendgrid",
        "discord",
        "telnyx",
        "token-io",
        "wise",
        "circle",
        "wechat-pay",
        "utila",
        "alipay-plus",
        "aws-sns",
        "aws-ses",
        "ebay",
    ];
    names.map(find).to_vec()
}

#[test]
fn a_generated_pair_signs_and_checks() {
    for provider in played() {
        let pair = generate_pair(provider).unwrap();
        let draft = signed(provider, &pair.private);
        for checks_with in [Secret::new(pair.public.clone()), pair.private.clone()] {
            let keyring = Keyring::new(provider, vec![checks_with]).unwrap();
            let verified = verify(provider, &keyring, &draft.request(), now());
            assert!(verified.is_ok(), "{}: {verified:?}", provider.name);
        }
        let pinned = settings(&[("public_key", &pair.public)]);
        let keyring = Keyring::with_settings(provider, vec![], pinned).unwrap();
        assert!(verify(provider, &keyring, &draft.request(), now()).is_ok(), "{}", provider.name);
        assert!(wanted_key(provider, &keyring, &draft.request()).unwrap().is_none());
        identify(provider, &draft.request()).unwrap();

        let other = generate_pair(provider).unwrap().public;
        let keyring = Keyring::new(provider, vec![Secret::new(other)]).unwrap();
        let rejection = code(verify(provider, &keyring, &draft.request(), now()));
        assert_eq!(rejection, "signature_mismatch", "{}", provider.name);
        let forged = Secret::new(pair.public.clone());
        let event = SampleEvent { id: "evt_1", event_type: "", at: now(), object: None };
        let signed = sign(provider, &forged, sample(provider, &event), now());
        assert_eq!(signed.unwrap_err(), CannotSign::PublicKey, "{}", provider.name);
    }
}

#[test]
fn travis_is_checked_and_never_played() {
    assert!(generate_pair(find("travis-ci")).is_none());
    let key = generate_pair(find("wise")).unwrap();
    let travis = find("travis-ci");
    let event = SampleEvent { id: "1", event_type: "", at: now(), object: None };
    let signed = sign(travis, &key.private, sample(travis, &event), now());
    assert_eq!(signed.unwrap_err(), CannotSign::Outdated);
}

/// A key of one kind is no key for another, in whatever form it comes.
#[test]
fn kinds_of_keys_are_not_mixed_up() {
    let kinds = ["discord", "circle", "wise"].map(find);
    for owner in kinds {
        let pair = generate_pair(owner).unwrap();
        let bare: String = pair.public.lines().filter(|line| !line.starts_with('-')).collect();
        for provider in kinds {
            for text in [pair.public.clone(), bare.clone()] {
                let keyring = Keyring::new(provider, vec![Secret::new(text)]);
                assert_eq!(keyring.is_ok(), owner.name == provider.name, "{}", provider.name);
            }
            let private = Keyring::new(provider, vec![pair.private.clone()]);
            assert_eq!(private.is_ok(), owner.name == provider.name, "{}", provider.name);
        }
        for name in ["stripe", "github", "svix", "gitlab", "telegram", "twilio"] {
            let keyring = Keyring::new(find(name), vec![Secret::new(pair.public.clone())]);
            // Whoever knows a public key must not be able to sign with it as with a secret.
            assert!(keyring.is_err(), "{name}");
        }
    }
}

#[test]
fn other_curves_are_refused() {
    let key = CertificateKey::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let keyring = Keyring::new(find("circle"), vec![Secret::new(key.public_key_pem())]);
    assert!(matches!(keyring, Err(BadSecret::NotPublicKey { number: 0, .. })));
}

#[test]
fn short_rsa_keys_are_refused() {
    for name in ["wise", "utila", "aws-sns", "travis-ci"] {
        let keyring = Keyring::new(find(name), vec![Secret::new(SHORT_RSA)]);
        let Err(BadSecret::NotPublicKey { expected, .. }) = keyring else { panic!("{name}") };
        assert!(expected.contains("2048"));
    }
}

#[test]
fn weak_ed25519_keys_are_refused_in_every_form() {
    let zeros = [0; 32];
    let spki = [&hex::decode("302a300506032b6570032100").unwrap()[..], &zeros].concat();
    let forms = [
        hex::encode(zeros),
        base64(&zeros),
        base64(&spki),
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----", base64(&spki)),
        json!({"kty": "OKP", "crv": "Ed25519", "x": "A".repeat(43)}).to_string(),
    ];
    for form in forms {
        assert!(Keyring::new(find("discord"), vec![Secret::new(form.clone())]).is_err(), "{form}");
    }
}

#[test]
fn keys_may_be_written_in_many_ways() {
    let draft_of = |name| {
        let pair = generate_pair(find(name)).unwrap();
        (signed(find(name), &pair.private), pair)
    };
    let check = |name: &str, draft: &Draft, text: &str| {
        let keyring = Keyring::new(find(name), vec![Secret::new(text)]);
        let keyring = keyring.unwrap_or_else(|bad| panic!("{name}: {bad}: {text}"));
        verify(find(name), &keyring, &draft.request(), now()).unwrap();
    };
    let unlined = |pem: &str| pem.replace('\n', "");
    let der = |pem: &str| {
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        decode(&body)
    };

    let (draft, pair) = draft_of("discord");
    let spki = der(&pair.public);
    let raw = &spki[12..];
    let url = base64(raw).replace('+', "-").replace('/', "_").replace('=', "");
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": url}).to_string();
    for text in [hex::encode(raw), hex::encode_upper(raw), base64(raw), url, base64(&spki), jwk] {
        check("discord", &draft, &text);
    }
    check("discord", &draft, &unlined(&pair.public));
    check("discord", &draft, &pair.public.replace('\n', "\\n"));

    let (draft, pair) = draft_of("circle");
    let spki = der(&pair.public);
    let part = |range: std::ops::Range<usize>| {
        base64(&spki[range]).replace('+', "-").replace('/', "_").replace('=', "")
    };
    let (x, y) = (part(27..59), part(59..91));
    check("circle", &draft, &json!({"kty": "EC", "crv": "P-256", "x": x, "y": y}).to_string());
    check("circle", &draft, &base64(&spki));
    for wrong in [
        json!({"kty": "EC", "crv": "P-384", "x": x, "y": y}),
        json!({"kty": "EC", "crv": "P-256", "x": y, "y": x}),
        json!({"kty": "EC", "crv": "P-256", "x": x}),
        json!({"kty": "oct", "k": x}),
    ] {
        let keyring = Keyring::new(find("circle"), vec![Secret::new(wrong.to_string())]);
        assert!(keyring.is_err(), "{wrong}");
    }

    let (draft, pair) = draft_of("wise");
    let spki = der(&pair.public);
    let pkcs1 = &spki[24..];
    let text =
        format!("-----BEGIN RSA PUBLIC KEY-----\n{}\n-----END RSA PUBLIC KEY-----", base64(pkcs1));
    check("wise", &draft, &text);
    check("wise", &draft, &base64(&spki));
    let made = certificate(&Wanted::default(), pair.private_pem());
    check("wise", &draft, &made.leaf);
}

/// A key that is cut anywhere is none, and reading it never panics.
#[test]
fn cut_keys_are_refused() {
    for name in ["discord", "circle", "wise"] {
        let pair = generate_pair(find(name)).unwrap();
        let body: String = pair.public.lines().filter(|line| !line.starts_with('-')).collect();
        let der = decode(&body);
        for end in 0..der.len() {
            let text = if end == 0 { "x".to_owned() } else { base64(&der[..end]) };
            // Thirty-two bytes by themselves are an Ed25519 key.
            if name == "discord" && end == 32 {
                continue;
            }
            assert!(Keyring::new(find(name), vec![Secret::new(text)]).is_err(), "{name} {end}");
        }
        for end in (0..pair.public.len() - 2).filter(|end| *end > 0) {
            let text = pair.public[..end].trim();
            assert!(Keyring::new(find(name), vec![Secret::new(text)]).is_err(), "{name} {end}");
        }
        let long = format!("{}{}", pair.public, "A".repeat(20_000));
        assert!(Keyring::new(find(name), vec![Secret::new(long)]).is_err());
    }
}
