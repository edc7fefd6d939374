//! PayPal: a chain that is fetched, and an id that is signed.

use http::{HeaderMap, HeaderValue};
use oncebox_verify::{
    BadSecret, CannotSign, Draft, Keyring, Request, SampleEvent, Secret, WantedForm, WantedKey,
    generate_pair, sample, sign, sign_with, verify, wanted_key,
};

use crate::bed::{code, find, now, settings};

const PAYPAL_URL: &str = "https://api.paypal.com/v1/notifications/certs/CERT-sample";

/// PayPal's, which is fetched with its chain.
pub(crate) fn wanted_paypal() -> WantedKey {
    let form = WantedForm::Certificate { subject_end: ".paypal.com".into(), chained: true };
    WantedKey { url: PAYPAL_URL.to_owned(), kid: None, form }
}

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
