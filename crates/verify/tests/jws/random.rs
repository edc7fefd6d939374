//! Random tokens and keys: none panics, and none verifies.

use std::sync::LazyLock;

use http::HeaderMap;
use jiff::Timestamp;
use oncebox_verify::{Keyring, Request, Secret, Settings, verify_with, wanted_key};
use proptest::prelude::*;

use crate::bed::{BODY, HEADER, NOW, SHARED, find, keyring, settings};
use crate::signer::{claims, encode, rsa_pem};

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
