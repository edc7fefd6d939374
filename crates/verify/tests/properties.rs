//! What must hold for any input: no panic, and what we sign is what we accept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::custom::HmacSettings;
use oncebox_verify::{
    Draft, Found, Keyring, Provider, Request, SampleEvent, Secret, Trust, catalogue,
    content_digest, events, explain, guard_digest, handshake, identify, sample, sign, sign_with,
    verify,
};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::keys::Keys;

#[expect(dead_code, reason = "other tests ask for more kinds of keyrings")]
mod keys;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn any_provider() -> impl Strategy<Value = &'static Provider> {
    proptest::sample::select(catalogue::ALL.to_vec())
}

/// Names that entries read, so that values get past the first check.
fn any_header_name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&[
        "content-type",
        "idempotency-key",
        "linear-delivery",
        "linear-signature",
        "shopify-hmac-sha256",
        "stripe-signature",
        "svix-id",
        "svix-signature",
        "svix-timestamp",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
        "x-github-delivery",
        "x-gitlab-token",
        "x-hub-signature",
        "x-hub-signature-256",
        "x-shopify-hmac-sha256",
        "x-slack-request-timestamp",
        "x-slack-signature",
        "x-twilio-signature",
        "x-twilio-webhooks-signature-settings",
        "x-webhook-signature",
        "x-webhook-token",
    ])
}

fn any_header_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        "(t=|v1=|v0=|v1,|v1a,|sha256=|algorithm=|[0-9a-f]{1,70}|[A-Za-z0-9+/=]{1,50}|[, =;]){0,6}"
            .prop_map(String::into_bytes),
        "1[0-9]{9}|[0-9]{13}|[0-9]{30}".prop_map(String::into_bytes),
    ]
}

fn any_headers() -> impl Strategy<Value = HeaderMap> {
    proptest::collection::vec((any_header_name(), any_header_value()), 0..8).prop_map(|pairs| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        headers
    })
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let key = "id|type|data|object|signature|timestamp|token|event-data|event|payload|[a-z]{0,3}";
    let json = any_json(key);
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        json.clone().prop_map(|value| value.to_string().into_bytes()),
        // Almost JSON: one byte is something else.
        (json, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(value, place, byte)| {
            let mut body = value.to_string().into_bytes();
            let place = place.index(body.len());
            body[place] = byte;
            body
        }),
        "(payload=|MessageSid=|id=|%7B|%22|[a-z&=%+]){0,20}".prop_map(String::into_bytes),
    ]
}

fn any_json(key: &'static str) -> impl Strategy<Value = serde_json::Value> + Clone {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(key, inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_settings() -> impl Strategy<Value = HmacSettings> {
    let formats = ["seconds", "milliseconds", "iso8601", "http-date"];
    let place = prop_oneof![
        Just((None, None)),
        Just((Some("X-Time".to_owned()), None)),
        Just((None, Some("t".to_owned()))),
    ];
    let signature = prop_oneof![
        Just((None, String::new(), None)),
        Just((Some("v1".to_owned()), String::new(), None)),
        Just((None, "v1,".to_owned(), Some(" ".to_owned()))),
        Just((None, "sha256=".to_owned(), None)),
    ];
    let choices = (
        proptest::sample::select(vec!["sha256", "sha1", "sha512"]),
        proptest::sample::select(vec!["hex", "base64", "base64url"]),
        proptest::sample::select(formats.to_vec()),
    );
    (signature, place, choices, "[a-z.:]{0,4}").prop_map(|(signature, place, choices, between)| {
        let (signature_label, signature_prefix, signature_separator) = signature;
        // A time that shares the header needs a signature that has a label too.
        let (timestamp_header, timestamp_label) = match (&signature_label, place) {
            (None, (None, Some(_))) => (Some("X-Time".to_owned()), None),
            (_, place) => place,
        };
        let stamped = timestamp_header.is_some() || timestamp_label.is_some();
        let stamp = if stamped { "{timestamp}" } else { "" };
        HmacSettings {
            signature_label,
            signature_prefix,
            signature_separator,
            algorithm: choices.0.to_owned(),
            encoding: choices.1.to_owned(),
            // An HTTP date holds a comma and is refused in a list.
            timestamp_format: match timestamp_label {
                Some(_) => choices.2.replace("http-date", "seconds"),
                None => choices.2.to_owned(),
            },
            timestamp_header,
            timestamp_label,
            signed: Some(format!("{stamp}{between}{{body}}")),
            ..HmacSettings::default()
        }
    })
}

fn draft(body: Vec<u8>) -> Draft {
    let url = "https://example.com/in/any".to_owned();
    Draft { method: "POST".to_owned(), url, headers: HeaderMap::new(), body }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_panics(
        provider in any_provider(),
        headers in any_headers(),
        body in any_body(),
        url in "(https?://)?[a-z.:@/?#&=\\[\\]]{0,30}",
    ) {
        let request = Request { method: "POST", url: &url, headers: &headers, body: &body };
        let Some(keys) = Keys::of(provider) else { return Ok(()) };
        let keyring = keys.checking(provider);
        if let Err(rejection) = verify(provider, &keyring, &request, now()) {
            prop_assert!(oncebox_verify::Rejection::CODES.contains(&rejection.code()));
        }
        match events(provider, &request) {
            Ok(found) => for Found { event, .. } in found {
                for value in [Some(&event.id), Some(&event.event_type), event.object.as_ref()] {
                    let fits = |value: &str| (1..=512).contains(&value.len());
                    prop_assert!(value.is_none_or(|value| fits(value)));
                }
            }
            Err(malformed) => {
                prop_assert!(oncebox_verify::Malformed::CODES.contains(&malformed.code()));
            }
        }
        for verified in [false, true] {
            let reply = handshake(provider, &keyring, &request, verified);
            prop_assert!(reply.is_none_or(|reply| reply.body.len() <= 2048));
        }
        let content = content_digest(provider, &request);
        if provider.content_is_body() {
            prop_assert_eq!(content, <[u8; 32]>::from(Sha256::digest(&body)));
        }
        prop_assert_eq!(guard_digest(provider, &request).is_some(), provider.guards_twins());
        let explanation = explain(provider, &keyring, &request, now());
        let printed = format!("{explanation:?}");
        // A key of a pair is public anyway.
        let secret = keyring.secrets()[0].expose();
        prop_assert!(!printed.contains(secret));
    }

    #[test]
    fn what_is_signed_verifies_and_nothing_near_it(
        settings in any_settings(),
        body in proptest::collection::vec(any::<u8>(), 0..300),
        secret in "[!-~]{1,40}",
        place in any::<prop::sample::Index>(),
    ) {
        let provider = settings.provider().unwrap();
        let secret = Secret::new(secret);
        let keyring = Keyring::new(&provider, vec![secret.clone()]).unwrap();
        let mut signed = sign(&provider, &secret, draft(body), now()).unwrap();
        let verified = verify(&provider, &keyring, &signed.request(), now());
        prop_assert!(verified.is_ok(), "{verified:?} {signed:?}");
        if provider.signs_timestamp() {
            prop_assert_eq!(verified.unwrap().signed_at, Some(now()));
            let late = now() + SignedDuration::from_secs(301);
            prop_assert!(verify(&provider, &keyring, &signed.request(), late).is_err());
        }
        if !signed.body.is_empty() {
            let place = place.index(signed.body.len());
            signed.body[place] ^= 0x40;
            prop_assert!(verify(&provider, &keyring, &signed.request(), now()).is_err());
        }
    }

    #[test]
    fn what_a_private_key_signs_its_public_key_verifies(
        seed in any::<[u8; 32]>(),
        body in proptest::collection::vec(any::<u8>(), 0..300),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let standard = catalogue::find("standard-webhooks").unwrap();
        let secret = Secret::new(format!("whsk_{}", STANDARD.encode(seed)));
        let keyring = Keyring::new(standard, vec![secret.clone()]).unwrap();
        let mut unsigned = draft(body);
        unsigned.headers.insert("webhook-id", HeaderValue::from_static("msg_1"));
        let mut signed = sign(standard, &secret, unsigned, now()).unwrap();
        let verified = verify(standard, &keyring, &signed.request(), now());
        prop_assert_eq!(verified.map(|verified| verified.scheme), Ok("ed25519"));

        let right = signed.headers["webhook-signature"].to_str().unwrap();
        let mut bytes = STANDARD.decode(right.strip_prefix("v1a,").unwrap()).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        let wrong = HeaderValue::from_str(&format!("v1a,{}", STANDARD.encode(bytes))).unwrap();
        signed.headers.insert("webhook-signature", wrong);
        prop_assert!(verify(standard, &keyring, &signed.request(), now()).is_err());
    }

    #[test]
    fn samples_are_what_was_asked_for(
        provider in any_provider(),
        id in "[A-Za-z0-9_-]{1,60}",
        object in proptest::option::of("[A-Za-z0-9_-]{1,60}"),
    ) {
        // The object of SNS is the topic, which the source names.
        let object = object.filter(|_| provider.name != "aws-sns");
        // That of Paymob is a number.
        let object = object.map(|text| match &*provider.name {
            "paymob" => text.len().to_string(),
            _ => text,
        });
        let event = SampleEvent { id: &id, event_type: "", at: now(), object: object.as_deref() };
        let Some(keys) = Keys::of(provider) else { return Ok(()) };
        let draft = sample(provider, &event);
        let signed = sign_with(provider, &keys.signing(provider), draft, now()).unwrap();
        prop_assert!(verify(provider, &keys.checking(provider), &signed.request(), now()).is_ok());
        let request = signed.request();
        let found = events(provider, &request).unwrap();
        prop_assert_eq!(found.len(), 1);
        let read = &found[0].event;
        // The id of Dropbox Sign is its signature, which nobody can choose.
        let chosen = read.trust != Trust::Digest && provider.name != "dropbox-sign";
        prop_assert!(!chosen || read.id.split(':').any(|part| part == id), "{}", read.id);
        // An object that is also the identity is what that was asked to be.
        if let (Some(asked), false) = (&object, provider.object.is_empty()) {
            let read = read.object.as_deref();
            prop_assert!(read == Some(asked) || read == Some(&id), "{read:?}");
        }
    }

    #[test]
    fn configured_providers_have_samples_too(
        event_id in proptest::sample::select(vec!["/a/b", "header:X-Id", "form:id", "digest"]),
        event_type in proptest::sample::select(vec!["/kind", "header:X-Kind", "form:kind"]),
        signed in proptest::sample::select(vec!["{body}", "{header:X-Id}.{body}{method}{url}"]),
    ) {
        // A body is JSON or a form, never both.
        prop_assume!(!(event_id.starts_with('/') && event_type.starts_with("form")));
        prop_assume!(!(event_id.starts_with("form") && event_type.starts_with('/')));
        let settings = HmacSettings {
            event_id: event_id.to_owned(),
            event_type: event_type.to_owned(),
            signed: Some(signed.to_owned()),
            ..HmacSettings::default()
        };
        let provider = settings.provider().unwrap();
        let secret = Secret::new("key");
        let event = SampleEvent { id: "e1", event_type: "a.b", at: now(), object: None };
        let signed = sign(&provider, &secret, sample(&provider, &event), now()).unwrap();
        let keyring = Keyring::new(&provider, vec![secret]).unwrap();
        prop_assert!(verify(&provider, &keyring, &signed.request(), now()).is_ok());
        let request = signed.request();
        let read = identify(&provider, &request).unwrap();
        prop_assert_eq!(read.event_type.as_ref(), "a.b");
        prop_assert!(read.id == "e1" || event_id == "digest");
    }

    /// Labels may come in any order, among others, with or without spaces.
    #[test]
    fn lists_may_be_in_any_order(
        others in proptest::collection::vec("[a-su-z][0-9]?=[a-z0-9]{0,8}", 0..5),
        place in any::<prop::sample::Index>(),
        space in "[ ]?",
    ) {
        let stripe = catalogue::find("stripe").unwrap();
        let mut signed =
            sign(stripe, &Secret::new(SECRET), draft(b"{}".to_vec()), now()).unwrap();
        let right = signed.headers["stripe-signature"].to_str().unwrap().to_owned();
        let mut items: Vec<String> = right.split(',').map(str::to_owned).collect();
        items.extend(others);
        let start = place.index(items.len());
        items.rotate_left(start);
        let value = items.join(&format!(",{space}"));
        signed.headers.insert("stripe-signature", HeaderValue::from_str(&value).unwrap());
        let keyring = Keyring::new(stripe, vec![Secret::new(SECRET)]).unwrap();
        let verified = verify(stripe, &keyring, &signed.request(), now());
        prop_assert!(verified.is_ok(), "{value}: {verified:?}");
    }
}
