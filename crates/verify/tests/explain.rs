//! What an operator is told about a request that does not verify.

use http::{HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::custom::HmacSettings;
use oncebox_verify::{
    Draft, Explanation, Keyring, Provider, SampleEvent, Scheme, Secret, catalogue, explain,
    generate_pair, sample, sign, sign_with, verify,
};

use crate::keys::Keys;

#[expect(dead_code, reason = "other tests ask for more kinds of keyrings")]
mod keys;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

fn signed(provider: &Provider, secret: &str) -> Draft {
    let event = SampleEvent { id: "evt_1", event_type: "", at: now(), object: None };
    sign(provider, &Secret::new(secret), sample(provider, &event), now()).unwrap()
}

fn explained(provider: &Provider, secret: &str, draft: &Draft) -> Explanation {
    let keyring = Keyring::new(provider, vec![Secret::new(secret)]).unwrap();
    let explanation = explain(provider, &keyring, &draft.request(), now());
    let printed = format!("{explanation:?}");
    assert!(!printed.contains(secret), "a secret is told: {printed}");
    explanation
}

#[track_caller]
fn advises(provider: &Provider, secret: &str, draft: &Draft, words: &str) {
    let explanation = explained(provider, secret, draft);
    assert!(!explanation.is_ok());
    assert!(explanation.advice.iter().any(|advice| advice.contains(words)), "{explanation:#?}");
}

fn set(draft: &mut Draft, name: &'static str, value: &str) {
    draft.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
}

#[test]
fn every_genuine_sample_is_explained_as_fine() {
    for provider in catalogue::ALL.iter() {
        let Some(keys) = Keys::of(provider) else { continue };
        let event = SampleEvent { id: "evt_1", event_type: "", at: now(), object: None };
        let draft = sample(provider, &event);
        let draft = sign_with(provider, &keys.signing(provider), draft, now()).unwrap();
        let explanation = explain(provider, &keys.checking(provider), &draft.request(), now());
        assert!(explanation.is_ok(), "{}: {explanation:#?}", provider.name);
        let names: Vec<&str> = explanation.steps.iter().map(|step| step.name).collect();
        let mut expected = vec!["header", "decode", "signature", "timestamp", "identity", "type"];
        // Some tokens may say when they were made, and need not.
        if !names.contains(&"timestamp") {
            assert!(matches!(provider.schemes[0], Scheme::Jws(_)), "{}", provider.name);
            expected.retain(|name| *name != "timestamp");
        }
        assert_eq!(names, expected, "{}", provider.name);
    }
}

#[test]
fn batches_are_counted() {
    let quickbooks = find("quickbooks");
    let step = |body: &str| {
        let draft = Draft { body: body.as_bytes().to_vec(), ..signed(quickbooks, SECRET) };
        let draft = sign(quickbooks, &Secret::new(SECRET), draft, now()).unwrap();
        let explanation = explained(quickbooks, SECRET, &draft);
        assert!(explanation.is_ok(), "{explanation:#?}");
        explanation.steps.into_iter().find(|step| step.name == "identity").unwrap().detail
    };
    let one = r#"{"id":"1","type":"qbo.invoice.created.v1"}"#;
    assert!(step(&format!("[{one},{one},{one}]")).ends_with("2 more in the batch"));
    assert!(step("[]").contains("without events"));
}

/// There is no secret to name then.
#[test]
fn a_key_of_the_settings_is_no_secret() {
    let telnyx = find("telnyx");
    let pair = generate_pair(telnyx).unwrap();
    let settings = [("public_key".to_owned(), pair.public.clone())].into();
    let keyring = Keyring::with_settings(telnyx, Vec::new(), settings).unwrap();
    let draft = signed(telnyx, pair.private_pem());
    let verified = verify(telnyx, &keyring, &draft.request(), now()).unwrap();
    assert!(keyring.secrets().get(verified.secret).is_none());
    let explanation = explain(telnyx, &keyring, &draft.request(), now());
    let step = &explanation.steps[2];
    assert_eq!(step.detail, "ed25519 matches a public key that the source is set to");
}

#[test]
fn a_body_changed_on_the_way_is_proven() {
    let github = find("github");
    let right = signed(github, SECRET);
    let with_body = |body: Vec<u8>| Draft { body, ..right.clone() };
    let added = with_body([&right.body[..], b"\n"].concat());
    advises(github, SECRET, &added, "was added at the end");

    let text = String::from_utf8(right.body.clone()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pretty = with_body(serde_json::to_vec_pretty(&value).unwrap());
    advises(github, SECRET, &pretty, "parsed and re-encoded");

    let sent_pretty = with_body(pretty.body);
    let sent_pretty = sign(github, &Secret::new(SECRET), sent_pretty, now()).unwrap();
    let compact = Draft { body: right.body.clone(), ..sent_pretty };
    advises(github, SECRET, &compact, "indented by two");
}

#[test]
fn a_misread_secret_is_proven() {
    let quoted = format!("\"{SECRET}\"");
    advises(find("github"), &quoted, &signed(find("github"), SECRET), "without the quotes");
    // Polar takes the text, Standard Webhooks the base64 in it.
    let mut draft = signed(find("standard-webhooks"), SECRET);
    advises(find("polar"), SECRET, &draft, "decoded as base64");
    draft = signed(find("polar"), SECRET);
    advises(find("standard-webhooks"), SECRET, &draft, "taken as text");
}

#[test]
fn another_way_to_write_is_proven() {
    let settings = |encoding: &str, prefix: &str| HmacSettings {
        encoding: encoding.to_owned(),
        signature_prefix: prefix.to_owned(),
        ..HmacSettings::default()
    };
    let hex = settings("hex", "").provider().unwrap();
    let base64 = settings("base64", "sha256=").provider().unwrap();
    advises(&hex, "key", &signed(&base64, "key"), "in base64 with the prefix `sha256=`");
    advises(&base64, "key", &signed(&hex, "key"), "in hex with no prefix");
}

#[test]
fn another_provider_is_recognised() {
    let stripe = find("stripe");
    advises(stripe, SECRET, &signed(find("github"), "other"), "looks like github");
    advises(stripe, SECRET, &signed(find("github"), SECRET), "verifies as `github`");
    advises(stripe, SECRET, &signed(find("svix"), "b3RoZXI="), "looks like svix");
    // Of those that share a header, the one whose other headers are there too.
    advises(stripe, SECRET, &signed(find("shopify"), "other"), "looks like shopify");
    let mut bare = signed(find("github"), "other");
    bare.headers.remove("x-github-event");
    bare.headers.remove("x-github-delivery");
    advises(stripe, SECRET, &bare, "looks like github or");
}

#[test]
fn times_are_explained() {
    let stripe = find("stripe");
    let keyring = Keyring::new(stripe, vec![Secret::new(SECRET)]).unwrap();
    let later = now() + SignedDuration::from_hours(1);
    let draft = signed(stripe, SECRET);
    let explanation = explain(stripe, &keyring, &draft.request(), later);
    assert!(explanation.advice[0].contains("3600 s old"), "{explanation:#?}");
    let last = explanation.steps.last().unwrap();
    assert_eq!((last.name, last.ok), ("timestamp", false));

    let settings = |format: &str| HmacSettings {
        timestamp_header: Some("x-time".to_owned()),
        timestamp_format: format.to_owned(),
        ..HmacSettings::default()
    };
    let seconds = settings("seconds").provider().unwrap();
    let milliseconds = settings("milliseconds").provider().unwrap();
    advises(&seconds, "key", &signed(&milliseconds, "key"), "in milliseconds");
}

#[test]
fn urls_are_compared() {
    let twilio = find("twilio");
    let right = signed(twilio, SECRET);
    let with_url = |url: &str| Draft { url: url.to_owned(), ..right.clone() };
    let slash = with_url("https://example.com/in/sample/");
    advises(twilio, SECRET, &slash, "by the slash");
    advises(twilio, SECRET, &with_url("http://example.com/in/sample"), "by http and https");
    advises(twilio, SECRET, &with_url("https://example.com:8443/in/other"), "the secret");
    advises(twilio, SECRET, &with_url("/in/sample"), "full public URL");
}

#[test]
fn without_a_finding_the_hint_is_given() {
    let github = find("github");
    let mut draft = signed(github, "another secret");
    advises(github, SECRET, &draft, "compare the secret");
    set(&mut draft, "x-hub-signature-256", "");
    advises(github, SECRET, &draft, "is a secret set");
}

#[test]
fn the_other_kind_of_signature_is_named() {
    const PRIVATE: &str = "whsk_3+wiRzd38N2uqY10BFwirpApqOO3Wqj8zpQaop5bBzs=";
    let svix = find("svix");
    advises(svix, SECRET, &signed(svix, PRIVATE), "add the public key");
    advises(svix, PRIVATE, &signed(svix, SECRET), "add the shared secret");
    assert!(explained(svix, PRIVATE, &signed(svix, PRIVATE)).is_ok());
}
