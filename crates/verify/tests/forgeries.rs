//! Forgeries made from a genuine request of every entry. A new entry gets them free.

use std::ops::Deref;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::{
    Algorithm, BadSecret, CannotSign, Draft, Field, Identity, KeyForm, Keyring, Part, Place,
    Provider, Rejection, SampleEvent, Scheme, Secret, Trust, catalogue, identify, sample, sign,
    verify,
};
use sha2::Sha256;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PRIVATE: &str = "whsk_3+wiRzd38N2uqY10BFwirpApqOO3Wqj8zpQaop5bBzs=";
const PUBLIC: &str = "whpk_0MtEY8IYrd5Q6CsPVUQ/aDVBsLqKUsNHfLtjDA18R2o=";
const OTHER_PRIVATE: &str = "whsk_2SmKENGwc1g33EvYXaxkGw887yekfl1TpU8vP1svz/o=";
const ID: &str = "evt_0001";

/// An entry of the catalogue and one kind of secret that it takes.
struct Case {
    provider: &'static Provider,
    scheme: &'static Scheme,
    /// What the sender signs with.
    secret: &'static str,
    /// What we check that with.
    checks_with: &'static str,
    /// A secret of the same kind that is not ours.
    other: &'static str,
}

impl Deref for Case {
    type Target = Provider;

    fn deref(&self) -> &Provider {
        self.provider
    }
}

/// Every entry, once for each kind of secret.
fn cases() -> Vec<Case> {
    let shared = catalogue::ALL.iter().map(|provider| Case {
        provider,
        scheme: &provider.schemes[0],
        secret: SECRET,
        checks_with: SECRET,
        other: OTHER_SECRET,
    });
    let pairs = catalogue::ALL.iter().filter_map(|provider| {
        let scheme = provider
            .schemes
            .iter()
            .find(|s| s.signature().is_some_and(|s| s.key == KeyForm::Whpk))?;
        let (secret, checks_with, other) = (PRIVATE, PUBLIC, OTHER_PRIVATE);
        Some(Case { provider, scheme, secret, checks_with, other })
    });
    shared.chain(pairs).collect()
}

/// An entry of the catalogue with a shared secret.
fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn signed_with(provider: &Provider, secret: &str) -> Draft {
    let event = SampleEvent { id: ID, event_type: "", at: now(), object: None };
    sign(provider, &Secret::new(secret), sample(provider, &event), now())
        .unwrap_or_else(|error| panic!("{}: {error}", provider.name))
}

fn check_at(case: &Case, draft: &Draft, at: Timestamp) -> Result<usize, Rejection> {
    let keyring = Keyring::new(case, vec![Secret::new(case.checks_with)]).unwrap();
    verify(case, &keyring, &draft.request(), at).map(|verified| verified.secret)
}

#[track_caller]
fn refuse(case: &Case, draft: &Draft, what: &str) -> Rejection {
    match check_at(case, draft, now()) {
        Ok(_) => panic!("{}: accepted {what}: {draft:?}", case.name),
        Err(rejection) => rejection,
    }
}

/// The header of the proof the sample carries; none where it is in the body.
fn proof_header(case: &Case) -> Option<String> {
    case.scheme.header().map(str::to_lowercase)
}

fn with_header(draft: &Draft, name: &str, value: &str) -> Draft {
    let mut draft = draft.clone();
    let name: http::HeaderName = name.parse().unwrap();
    draft.headers.insert(name, HeaderValue::from_str(value).unwrap());
    draft
}

/// The same draft with other signatures in place of the right one.
fn with_proofs(case: &Case, forge: impl Fn(&str) -> Vec<String>) -> Vec<Draft> {
    let draft = signed_with(case, case.secret);
    match proof_header(case) {
        Some(name) => {
            let right = draft.headers[&name].to_str().unwrap().to_owned();
            forge(&right).iter().map(|forged| with_header(&draft, &name, forged)).collect()
        }
        None => {
            let body: serde_json::Value = serde_json::from_slice(&draft.body).unwrap();
            let right = body["signature"]["signature"].as_str().unwrap().to_owned();
            let forged = forge(&right).into_iter().map(|forged| {
                let mut body = body.clone();
                body["signature"]["signature"] = forged.into();
                Draft { body: body.to_string().into_bytes(), ..draft.clone() }
            });
            forged.collect()
        }
    }
}

/// The headers without which the sample proves nothing.
fn needed_headers(case: &Case) -> Vec<String> {
    let mut names: Vec<String> = proof_header(case).into_iter().collect();
    if let Some(layout) = case.scheme.signature() {
        if let Some(Place::Header(name)) = layout.timestamp.as_ref().map(|stamp| &stamp.place) {
            names.push(name.to_lowercase());
        }
        names.extend(layout.signed.iter().filter_map(|part| match part {
            Part::Header(name) => Some(name.to_lowercase()),
            _ => None,
        }));
    }
    names
}

#[test]
fn a_signed_sample_is_what_was_asked_for() {
    for case in &cases() {
        let draft = signed_with(case, case.secret);
        assert_eq!(check_at(case, &draft, now()), Ok(0), "{}: {draft:?}", case.name);
        let event = identify(case, &draft.request()).unwrap();
        assert_eq!(event.event_type, case.sample_type, "{}", case.name);
        if event.trust != Trust::Digest {
            assert_eq!(event.id, ID, "{}", case.name);
        }
        let object = case.object.first().map(|_| case.sample.object.as_ref());
        assert_eq!(event.object.as_deref(), object, "{}", case.name);
        if !case.version.is_empty() {
            assert_eq!(event.version, Some(now().as_millisecond()), "{}", case.name);
        }
    }
}

#[test]
fn a_sample_may_have_any_type() {
    for case in &cases() {
        // Its only type has a fixed beginning.
        if case.name == "supabase-auth-hooks" {
            continue;
        }
        let event = SampleEvent { id: ID, event_type: "some.thing", at: now(), object: None };
        let draft = sample(case, &event);
        let request = draft.request();
        let read = identify(case, &request).unwrap();
        assert_eq!(read.event_type, "some.thing", "{}", case.name);
    }
}

#[test]
fn a_changed_body_is_refused() {
    for case in &cases() {
        let covers_body = case.scheme.covers(&Field::Json("/any".into()));
        // Mailgun and tokens do not cover the body, and their notes say so.
        if !covers_body {
            assert!(["mailgun", "token"].contains(&case.name.as_ref()), "{}", case.name);
            continue;
        }
        let draft = signed_with(case, case.secret);
        for place in 0..draft.body.len() {
            let mut forged = draft.clone();
            forged.body[place] ^= 1;
            refuse(case, &forged, "a flipped bit");
        }
        for body in [b"".as_slice(), &draft.body[1..], &[&draft.body, b"\n".as_slice()].concat()] {
            refuse(case, &Draft { body: body.to_vec(), ..draft.clone() }, "another length");
        }
    }
}

#[test]
fn only_the_whole_signature_is_accepted() {
    let forge = |right: &str| {
        let changed = right.char_indices().map(|(place, old)| {
            let new = if old == 'a' { "b" } else { "a" };
            format!("{}{new}{}", &right[..place], &right[place + 1..])
        });
        let prefixes = (0..right.len()).map(|end| right[..end].to_owned());
        let longer = ["0", "00", "==", "AAAA", "x"].map(|tail| format!("{right}{tail}"));
        let garbage = ["v1,", "v1=", "sha256=", "v0=", ",", "=", " ", "t=,v1=", "{}", "null"];
        let twice = [format!("{right}{}", &right[right.len() - 8..])];
        let fixed = garbage.iter().map(|&text| text.to_owned());
        changed.chain(prefixes).chain(longer).chain(fixed).chain(twice).collect()
    };
    for case in &cases() {
        for forged in with_proofs(case, forge) {
            refuse(case, &forged, "another signature");
        }
    }
}

#[test]
fn needed_headers_are_there_once() {
    for case in &cases() {
        let draft = signed_with(case, case.secret);
        for name in needed_headers(case) {
            let mut missing = draft.clone();
            missing.headers.remove(&name);
            let code = refuse(case, &missing, "a missing header").code();
            assert!(["missing_header", "missing_timestamp"].contains(&code), "{name}: {code}");
            let code = refuse(case, &with_header(&draft, &name, ""), "an empty header").code();
            assert!(["missing_header", "missing_timestamp"].contains(&code), "{name}: {code}");

            let mut repeated = draft.clone();
            let value = draft.headers[&name].clone();
            repeated.headers.append(name.parse::<http::HeaderName>().unwrap(), value);
            assert_eq!(refuse(case, &repeated, "a repeat").code(), "repeated_header");

            let mut not_text = draft.clone();
            let bytes = HeaderValue::from_bytes(b"v1,\xff\xfe").unwrap();
            not_text.headers.insert(name.parse::<http::HeaderName>().unwrap(), bytes);
            assert_eq!(refuse(case, &not_text, "bytes").code(), "malformed_header");

            let long = with_header(&draft, &name, &"a".repeat(4097));
            assert_eq!(refuse(case, &long, "a long header").code(), "malformed_header");
        }
    }
}

#[test]
fn another_secret_is_refused() {
    for case in &cases() {
        let draft = signed_with(case, case.other);
        let code = refuse(case, &draft, "another secret").code();
        assert!(["signature_mismatch", "wrong_token"].contains(&code), "{}: {code}", case.name);

        let secrets = vec![Secret::new(case.checks_with), Secret::new(case.other)];
        let keyring = Keyring::new(case, secrets).unwrap();
        let verified = verify(case, &keyring, &draft.request(), now()).unwrap();
        assert_eq!(verified.secret, 1, "{}: the old secret still counts", case.name);
    }
}

#[test]
fn another_algorithm_is_refused() {
    for case in &cases() {
        let Some(hmac) = case.scheme.signature() else { continue };
        if hmac.algorithm.is_asymmetric() {
            continue;
        }
        for algorithm in [Algorithm::HmacSha1, Algorithm::HmacSha256, Algorithm::HmacSha512] {
            if algorithm == hmac.algorithm {
                continue;
            }
            let mut weaker = case.provider.clone();
            let scheme = oncebox_verify::Signature { algorithm, ..hmac.clone() };
            weaker.schemes = vec![Scheme::Signature(scheme)].into();
            refuse(case, &signed_with(&weaker, SECRET), "another algorithm");
        }
    }
}

#[test]
fn the_window_is_inclusive_and_has_two_sides() {
    for case in &cases() {
        let Some(stamp) = case.scheme.signature().and_then(|layout| layout.timestamp.as_ref())
        else {
            continue;
        };
        let draft = signed_with(case, case.secret);
        let Some(limit) = stamp.tolerance_secs.map(i64::from) else { continue };
        let at = |secs: i64| now() + SignedDuration::from_secs(secs);
        let code = |secs| check_at(case, &draft, at(secs)).map_err(|r| r.code());
        assert_eq!(code(limit), Ok(0), "{}", case.name);
        assert_eq!(code(-limit), Ok(0), "{}", case.name);
        assert_eq!(code(limit + 1), Err("timestamp_too_old"), "{}", case.name);
        assert_eq!(code(-limit - 1), Err("timestamp_too_new"), "{}", case.name);
    }
}

#[test]
fn a_signed_id_cannot_be_changed() {
    for case in &cases() {
        let draft = signed_with(case, case.secret);
        let signed = identify(case, &draft.request()).unwrap().trust == Trust::Signed;
        let Some(Identity::Field(Field::Header(name))) = case.identity.first() else {
            continue;
        };
        let forged = with_header(&draft, name, "evt_0002");
        assert_eq!(check_at(case, &forged, now()).is_err(), signed, "{}", case.name);
    }
}

/// One second more is within the window, so only the signature can tell.
#[test]
fn a_signed_time_cannot_be_changed() {
    for case in &cases() {
        let stamp = case.scheme.signature().and_then(|layout| layout.timestamp.as_ref());
        let Some(Place::Header(name)) = stamp.map(|stamp| &stamp.place) else { continue };
        let draft = signed_with(case, case.secret);
        let later = (now().as_second() + 1).to_string();
        let forged = with_header(&draft, &name.to_lowercase(), &later);
        assert_eq!(refuse(case, &forged, "another time").code(), "signature_mismatch");
    }
}

/// An id under Svix's names means nothing beside a signature under the standard's.
#[test]
fn an_id_of_the_other_family_is_not_believed() {
    let svix = &case("svix");
    let standard = &case("standard-webhooks");
    let draft = with_header(&signed_with(standard, SECRET), "svix-id", "evt_0002");
    assert_eq!(check_at(svix, &draft, now()), Ok(0));
    let event = identify(svix, &draft.request()).unwrap();
    assert_eq!((event.id.as_ref(), event.trust), (ID, Trust::Signed));
}

/// Each kind of GitLab secret counts only in its own place.
#[test]
fn a_gitlab_signing_token_is_no_password() {
    let gitlab = &case("gitlab");
    let signed = signed_with(gitlab, SECRET);
    let mut bare = signed.clone();
    bare.headers.remove("webhook-signature");
    refuse(gitlab, &with_header(&bare, "x-gitlab-token", SECRET), "a signing token as a token");

    // With both kinds configured, a wrong signature is not saved by the right token.
    let secrets = vec![Secret::new(SECRET), Secret::new("glsecret-123")];
    let keyring = Keyring::new(gitlab, secrets).unwrap();
    let both = with_header(&signed, "x-gitlab-token", "glsecret-123");
    assert_eq!(verify(gitlab, &keyring, &both.request(), now()).unwrap().secret, 0);
    let wrong = Draft { body: b"{}".to_vec(), ..both };
    assert_eq!(
        verify(gitlab, &keyring, &wrong.request(), now()),
        Err(Rejection::SignatureMismatch { tried: 1 })
    );
    let only_token = with_header(&bare, "x-gitlab-token", "glsecret-123");
    assert_eq!(verify(gitlab, &keyring, &only_token.request(), now()).unwrap().secret, 1);
    assert_eq!(identify(gitlab, &only_token.request()).unwrap().trust, Trust::Digest);
}

#[test]
fn lists_are_read_strictly() {
    let stripe = &case("stripe");
    let draft = signed_with(stripe, SECRET);
    let right = draft.headers["stripe-signature"].to_str().unwrap();
    let set = |value: &str| with_header(&draft, "stripe-signature", value);
    let signature = right.split_once(",v1=").unwrap().1;
    let zeros = "0".repeat(64);

    let rolled = format!("t=1760000000,v1={zeros},v0=x,v1={signature}");
    assert_eq!(check_at(stripe, &set(&rolled), now()), Ok(0));
    let two_times = format!("t=1760000000,{right}");
    assert_eq!(refuse(stripe, &set(&two_times), "two times").code(), "bad_timestamp");
    let no_time = format!("v1={signature}");
    assert_eq!(refuse(stripe, &set(&no_time), "no time").code(), "missing_timestamp");
    let no_v1 = format!("t=1760000000,v0={signature}");
    assert_eq!(refuse(stripe, &set(&no_v1), "no v1").code(), "no_known_scheme");
    let many = format!("{right}{}", format!(",v1={signature}").repeat(8));
    assert_eq!(refuse(stripe, &set(&many), "nine").code(), "too_many_signatures");
    let upper = format!("t=1760000000,v1={}", signature.to_uppercase());
    assert_eq!(refuse(stripe, &set(&upper), "upper case").code(), "malformed_signature");
}

#[test]
fn supabase_joins_signatures_by_comma_and_space() {
    let supabase = &case("supabase-auth-hooks");
    let draft = signed_with(supabase, SECRET);
    let right = draft.headers["webhook-signature"].to_str().unwrap();
    let zeros = format!("v1,{}=", "A".repeat(43));
    for value in [format!("{zeros}, {right}"), format!("{right}, {zeros}")] {
        assert_eq!(
            check_at(supabase, &with_header(&draft, "webhook-signature", &value), now()),
            Ok(0)
        );
    }
}

#[test]
fn twilio_covers_every_kind_of_body() {
    let twilio = &case("twilio");
    let form = signed_with(twilio, SECRET);
    // A form passed off as something else is covered by nothing.
    let disguised = with_header(&form, "content-type", "application/json");
    assert_eq!(refuse(twilio, &disguised, "a disguised form").code(), "missing_body_hash");
    let weaker =
        with_header(&form, "x-twilio-webhooks-signature-settings", "key=k,algorithm=HMAC_MD5");
    assert_eq!(refuse(twilio, &weaker, "MD5").code(), "unknown_algorithm");

    let mut json = form.clone();
    json.headers.insert("content-type", HeaderValue::from_static("application/json"));
    json.body = br#"{"a":1}"#.to_vec();
    let mut json = sign(twilio, &Secret::new(SECRET), json, now()).unwrap();
    assert!(json.url.contains("?bodySHA256="));
    assert_eq!(check_at(twilio, &json, now()), Ok(0));
    json.body = br#"{"a":2}"#.to_vec();
    assert_eq!(refuse(twilio, &json, "another body").code(), "body_hash_mismatch");

    // Twilio signs the URL with or without its default port.
    let port = Draft { url: form.url.replace("example.com", "example.com:443"), ..form };
    assert_eq!(check_at(twilio, &port, now()), Ok(0));
}

/// What a sender of `v1` makes of the public key, which everyone may know.
#[test]
fn a_public_key_is_never_a_shared_secret() {
    let encoded = PUBLIC.strip_prefix("whpk_").unwrap();
    let decoded = STANDARD.decode(encoded).unwrap();
    let keys = [PUBLIC.as_bytes(), encoded.as_bytes(), &decoded];
    for case in cases().iter().filter(|case| case.secret == PRIVATE) {
        let genuine = signed_with(case, PRIVATE);
        let name = proof_header(case).unwrap();
        let secrets = vec![Secret::new(PUBLIC), Secret::new(SECRET)];
        let both = Keyring::new(case, secrets).unwrap();
        for key in keys {
            let seconds = now().as_second().to_string();
            let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
            let mac = mac.chain_update(format!("{ID}.{seconds}.")).chain_update(&genuine.body);
            let mac = STANDARD.encode(mac.finalize().into_bytes());
            let forged = with_header(&genuine, &name, &format!("v1,{mac}"));
            assert_eq!(refuse(case, &forged, "a MAC").code(), "no_known_scheme");
            let rejection = verify(case, &both, &forged.request(), now()).unwrap_err();
            assert_eq!(rejection.code(), "signature_mismatch");
            let forged = with_header(&genuine, &name, &format!("v1a,{mac}"));
            assert_eq!(refuse(case, &forged, "a MAC as v1a").code(), "malformed_signature");
        }
        // A right signature under the label of the other kind.
        let value = genuine.headers[&name].to_str().unwrap().replace("v1a,", "v1,");
        let relabelled = with_header(&genuine, &name, &value);
        assert_eq!(refuse(case, &relabelled, "v1a as v1").code(), "no_known_scheme");
    }
}

/// Entries without public keys refuse them, also where any text may be a secret.
#[test]
fn public_keys_fit_only_where_they_are_meant() {
    for provider in catalogue::ALL.iter() {
        let asymmetric =
            provider.schemes.iter().any(|s| s.signature().is_some_and(|s| s.key == KeyForm::Whpk));
        for key in [PUBLIC.to_owned(), PRIVATE.to_owned(), format!("v1a,{PUBLIC}")] {
            let keyring = Keyring::new(provider, vec![Secret::new(key)]).map(|_| ());
            let expected =
                if asymmetric { Ok(()) } else { Err(BadSecret::NotShared { number: 0 }) };
            assert_eq!(keyring, expected, "{}", provider.name);
        }
    }
}

/// Adding the order of the group to half of a signature must not make a second one.
#[test]
fn a_signature_has_one_form() {
    const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
    let order = hex::decode(ORDER).unwrap();
    for case in cases().iter().filter(|case| case.secret == PRIVATE) {
        for forged in with_proofs(case, |right| {
            let mut bytes = STANDARD.decode(right.strip_prefix("v1a,").unwrap()).unwrap();
            let mut carry = 0;
            for (byte, add) in bytes[32..].iter_mut().zip(&order) {
                carry += u16::from(*byte) + u16::from(*add);
                *byte = carry.to_le_bytes()[0];
                carry >>= 8;
            }
            vec![format!("v1a,{}", STANDARD.encode(bytes))]
        }) {
            assert_eq!(refuse(case, &forged, "a second form").code(), "signature_mismatch");
        }
    }
}

/// A sender that changes from one kind to the other sends both for a while.
#[test]
fn one_right_signature_in_a_list_is_enough() {
    let standard = &case("standard-webhooks");
    let secrets = || vec![Secret::new(SECRET), Secret::new(PUBLIC)];
    let keyring = Keyring::new(standard, secrets()).unwrap();
    let by_secret = signed_with(standard, SECRET);
    let by_key = signed_with(standard, PRIVATE);
    let check = |value: &str| {
        let draft = with_header(&by_secret, "webhook-signature", value);
        let verified = verify(standard, &keyring, &draft.request(), now());
        verified.map(|verified| (verified.secret, verified.scheme)).map_err(|r| r.code())
    };
    let (mac, signature) = (&by_secret.headers["webhook-signature"], "webhook-signature");
    let (mac, signature) = (mac.to_str().unwrap(), by_key.headers[signature].to_str().unwrap());
    let zeros = format!("v1,{}=", "A".repeat(43));
    let wrong = format!("v1a,{}==", "A".repeat(86));

    assert_eq!(check(mac), Ok((0, "hmac-sha256")));
    assert_eq!(check(signature), Ok((1, "ed25519")));
    assert_eq!(check(&format!("{zeros} {signature}")), Ok((1, "ed25519")));
    assert_eq!(check(&format!("{wrong} {mac}")), Ok((0, "hmac-sha256")));
    assert_eq!(check(&format!("{wrong} {zeros}")), Err("signature_mismatch"));
    assert_eq!(check(&wrong), Err("signature_mismatch"));
    assert_eq!(check("v2,abc"), Err("no_known_scheme"));

    // An old signature is old, whatever else is in the list.
    let both = with_header(&by_secret, "webhook-signature", &format!("{mac} {wrong}"));
    let late = now() + SignedDuration::from_secs(301);
    let rejection = verify(standard, &keyring, &both.request(), late).unwrap_err();
    assert_eq!(rejection.code(), "timestamp_too_old");
}

#[test]
fn a_public_key_cannot_sign() {
    let svix = &case("svix");
    let event = SampleEvent { id: ID, event_type: "", at: now(), object: None };
    let signed = sign(svix, &Secret::new(PUBLIC), sample(svix, &event), now());
    assert_eq!(signed.unwrap_err(), CannotSign::PublicKey);
}
