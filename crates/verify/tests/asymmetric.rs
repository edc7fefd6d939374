//! Public keys and certificates: what is taken for one, and what is not.

use http::{HeaderMap, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::{
    BadKey, BadSecret, CannotSign, Draft, FETCHED_BYTES_MAX, FetchedKey, Keyring, Provider,
    Rejection, Request, Roots, SampleEvent, Secret, Settings, WantedForm, WantedKey, catalogue,
    generate_pair, identify, sample, sign, sign_with, subscription_url, verify, verify_with,
    wanted_key,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair as CertificateKey, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use serde_json::{Value, json};

const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:orders";
const SNS_URL: &str = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0000.pem";

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn signed(provider: &Provider, private: &Secret) -> Draft {
    let event = SampleEvent { id: "evt_1", event_type: "", at: now(), object: None };
    sign(provider, private, sample(provider, &event), now()).unwrap()
}

fn code<T: std::fmt::Debug>(verdict: Result<T, Rejection>) -> &'static str {
    verdict.unwrap_err().code()
}

// Keys of a source.

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

/// Made with OpenSSL: 1024 bits.
const SHORT_RSA: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCs41AzjLmBkpmLs2gzSPbjziEY
FSAz6yzc9lPRB/CH0iQ3VNnFpWjudtJ3qnx8qx8G+tgchKunUQWy+duvPMVAxMTj
FNtT92totjUkmC+kt9Pn8xoxolcTTRa6xLuGOpz/2keYFqWyz4Q3v3PKptNae5Be
X7RnKc/Hp0enF/rgBQIDAQAB
-----END PUBLIC KEY-----";

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

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

// Certificates.

/// What a certificate of the tests says.
struct Wanted<'a> {
    common_name: &'a str,
    host: Option<&'a str>,
    years: (i32, i32),
    usage: ExtendedKeyUsagePurpose,
}

impl Default for Wanted<'_> {
    fn default() -> Wanted<'static> {
        Wanted {
            common_name: "messageverificationcerts.paypal.com",
            host: None,
            years: (2024, 2030),
            usage: ExtendedKeyUsagePurpose::ServerAuth,
        }
    }
}

struct Made {
    leaf: String,
    /// The leaf and what leads to the root.
    chain: String,
    roots: Roots,
    self_signed: String,
}

fn authority(name: &str) -> (CertificateParams, CertificateKey) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2040, 1, 1);
    (params, CertificateKey::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap())
}

/// A root, one below it, and a certificate for the public half of `private`.
fn certificate(wanted: &Wanted<'_>, private: &str) -> Made {
    let key = CertificateKey::from_pem(private).unwrap();
    let hosts: Vec<String> = wanted.host.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, wanted.common_name);
    params.not_before = date_time_ymd(wanted.years.0, 1, 1);
    params.not_after = date_time_ymd(wanted.years.1, 1, 1);
    params.extended_key_usages = vec![wanted.usage.clone()];

    let (root_params, root_key) = authority("root");
    let root = root_params.self_signed(&root_key).unwrap();
    let (middle_params, middle_key) = authority("middle");
    let issuer = Issuer::from_params(&root_params, &root_key);
    let middle = middle_params.signed_by(&middle_key, &issuer).unwrap();
    let issuer = Issuer::from_params(&middle_params, &middle_key);
    let leaf = params.signed_by(&key, &issuer).unwrap();
    Made {
        leaf: leaf.pem(),
        chain: format!("{}{}", leaf.pem(), middle.pem()),
        roots: Roots::from_der([root.der().as_ref()]),
        self_signed: params.self_signed(&key).unwrap().pem(),
    }
}

const PAYPAL_URL: &str = "https://api.paypal.com/v1/notifications/certs/CERT-sample";

/// PayPal's, which is fetched with its chain.
fn wanted_paypal() -> WantedKey {
    let form = WantedForm::Certificate { subject_end: ".paypal.com".into(), chained: true };
    WantedKey { url: PAYPAL_URL.to_owned(), kid: None, form }
}

fn wanted_sns() -> WantedKey {
    let form = WantedForm::Certificate { subject_end: ".amazonaws.com".into(), chained: false };
    WantedKey { url: SNS_URL.to_owned(), kid: None, form }
}

fn rsa_pem() -> String {
    generate_pair(find("wise")).unwrap().private_pem().to_owned()
}

fn parse(wanted: &WantedKey, bytes: &str, roots: &Roots) -> Result<FetchedKey, BadKey> {
    FetchedKey::parse(wanted, bytes.as_bytes(), roots, now())
}

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

// SNS.

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

// PayPal.

#[test]
fn paypal_is_checked_with_its_chain_and_the_webhook_id() {
    let provider = find("paypal");
    assert_eq!(Keyring::new(provider, vec![]).unwrap_err(), BadSecret::None);
    let keyring = Keyring::new(provider, vec![Secret::new("4JH86294D6297924G")]).unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("paypal-transmission-id", "t1"),
        ("paypal-transmission-time", "2025-10-09T08:53:18Z"),
        ("paypal-transmission-sig", "AAAA"),
        ("paypal-cert-url", PAYPAL_URL),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let request = Request { method: "POST", url: "/", headers: &headers, body: b"{}" };
    assert_eq!(wanted_key(provider, &keyring, &request).unwrap().unwrap(), wanted_paypal());
    assert_eq!(code(verify(provider, &keyring, &request, now())), "key_not_fetched");

    for url in [
        "https://paypal.com/cert",
        "https://api.paypal.com.evil.example/cert",
        "https://evilpaypal.com/cert",
        "https://a.b.paypal.com/cert",
        "http://api.paypal.com/cert",
    ] {
        let mut headers = headers.clone();
        headers.insert("paypal-cert-url", HeaderValue::from_str(url).unwrap());
        let request = Request { headers: &headers, ..request };
        let verdict =
            wanted_key(provider, &keyring, &request).map_err(|rejection| rejection.code());
        assert_eq!(verdict, Err("untrusted_certificate_url"), "{url}");
    }
    let mut missing = headers.clone();
    missing.remove("paypal-cert-url");
    let request = Request { headers: &missing, ..request };
    assert_eq!(code(wanted_key(provider, &keyring, &request)), "missing_header");
}

#[test]
fn paypal_can_be_played_with_a_key_beside_the_webhook_id() {
    let provider = find("paypal");
    let pair = generate_pair(provider).unwrap();
    let event = SampleEvent { id: "WH-1", event_type: "", at: now(), object: None };
    let keyring = |id: &str, key: &str| {
        let said = settings(&[("public_key", key)]);
        Keyring::with_settings(provider, vec![Secret::new(id)], said).unwrap()
    };
    let sender = keyring("4JH86294D6297924G", pair.private_pem());
    let draft = sign_with(provider, &sender, sample(provider, &event), now()).unwrap();
    let check = |keyring: &Keyring, draft: &Draft| {
        let verified = verify(provider, keyring, &draft.request(), now());
        verified.map(|verified| verified.secret).map_err(|rejection| rejection.code())
    };
    let ours = keyring("4JH86294D6297924G", &pair.public);
    assert_eq!(check(&ours, &draft), Ok(0));
    assert_eq!(check(&keyring("OTHER", &pair.public), &draft), Err("signature_mismatch"));
    let mut changed = draft.clone();
    changed.body.push(b' ');
    assert_eq!(check(&ours, &changed), Err("signature_mismatch"));
    let bare = sign(provider, &Secret::new("4JH"), sample(provider, &event), now());
    assert_eq!(bare.unwrap_err(), CannotSign::PublicKey);
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

// eBay.

#[test]
fn ebay_names_no_algorithm_of_its_own() {
    let ebay = find("ebay");
    let pair = generate_pair(ebay).unwrap();
    let draft = signed(ebay, &pair.private);
    let keyring = Keyring::new(ebay, vec![Secret::new(pair.public.clone())]).unwrap();
    let sent: Value =
        serde_json::from_slice(&decode(draft.headers["x-ebay-signature"].to_str().unwrap()))
            .unwrap();
    let check = |edit: &dyn Fn(&mut Value)| {
        let (mut sent, mut draft) = (sent.clone(), draft.clone());
        edit(&mut sent);
        let value = HeaderValue::from_str(&base64(sent.to_string().as_bytes())).unwrap();
        draft.headers.insert("x-ebay-signature", value);
        verify(ebay, &keyring, &draft.request(), now()).map_err(|rejection| rejection.code())
    };
    assert!(check(&|_| {}).is_ok());
    assert_eq!(check(&|sent| sent["alg"] = "none".into()), Err("unknown_algorithm"));
    assert_eq!(check(&|sent| sent["alg"] = "HS256".into()), Err("unknown_algorithm"));
    assert_eq!(check(&|sent| sent["digest"] = "MD5".into()), Err("unknown_algorithm"));
    assert_eq!(check(&|sent| sent["signature"] = "".into()), Err("malformed_signature"));
    assert_eq!(check(&|sent| sent["signature"] = 1.into()), Err("malformed_signature"));
    let signature = sent["signature"].as_str().unwrap();
    for place in 0..decode(signature).len() {
        let mut changed = decode(signature);
        changed[place] ^= 1;
        let changed = base64(&changed);
        assert!(check(&|sent| sent["signature"] = changed.clone().into()).is_err());
    }
}
