//! Forgeries made from a genuine request of every entry. A new entry gets them free.

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::{
    Algorithm, Draft, Field, Identity, Keyring, Part, Place, Provider, Rejection, SampleEvent,
    Scheme, Secret, Trust, catalogue, identify, sample, sign, verify,
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "evt_0001";

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn signed_with(provider: &Provider, secret: &str) -> Draft {
    let event = SampleEvent { id: ID, event_type: "", at: now(), object: None };
    sign(provider, &Secret::new(secret), sample(provider, &event), now())
        .unwrap_or_else(|error| panic!("{}: {error}", provider.name))
}

fn check_at(provider: &Provider, draft: &Draft, at: Timestamp) -> Result<usize, Rejection> {
    let keyring = Keyring::new(provider, vec![Secret::new(SECRET)]).unwrap();
    verify(provider, &keyring, &draft.request(), at).map(|verified| verified.secret)
}

#[track_caller]
fn refuse(provider: &Provider, draft: &Draft, what: &str) -> Rejection {
    match check_at(provider, draft, now()) {
        Ok(_) => panic!("{}: accepted {what}: {draft:?}", provider.name),
        Err(rejection) => rejection,
    }
}

/// The header of the proof the sample carries; none where it is in the body.
fn proof_header(provider: &Provider) -> Option<String> {
    match &provider.schemes[0] {
        Scheme::Hmac(hmac) => match &hmac.signature {
            Place::Header(header) | Place::Label { header, .. } => Some(header.to_lowercase()),
            _ => None,
        },
        Scheme::Token(token) => Some(token.header.to_lowercase()),
        Scheme::Twilio => Some("x-twilio-signature".to_owned()),
        _ => None,
    }
}

fn with_header(draft: &Draft, name: &str, value: &str) -> Draft {
    let mut draft = draft.clone();
    let name: http::HeaderName = name.parse().unwrap();
    draft.headers.insert(name, HeaderValue::from_str(value).unwrap());
    draft
}

/// The same draft with other signatures in place of the right one.
fn with_proofs(provider: &Provider, forge: impl Fn(&str) -> Vec<String>) -> Vec<Draft> {
    let draft = signed_with(provider, SECRET);
    match proof_header(provider) {
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
fn needed_headers(provider: &Provider) -> Vec<String> {
    let mut names: Vec<String> = proof_header(provider).into_iter().collect();
    if let Scheme::Hmac(hmac) = &provider.schemes[0] {
        if let Some(Place::Header(name)) = hmac.timestamp.as_ref().map(|stamp| &stamp.place) {
            names.push(name.to_lowercase());
        }
        names.extend(hmac.signed.iter().filter_map(|part| match part {
            Part::Header(name) => Some(name.to_lowercase()),
            _ => None,
        }));
    }
    names
}

#[test]
fn a_signed_sample_is_what_was_asked_for() {
    for provider in catalogue::ALL {
        let draft = signed_with(provider, SECRET);
        assert_eq!(check_at(provider, &draft, now()), Ok(0), "{}: {draft:?}", provider.name);
        let event = identify(provider, &draft.request()).unwrap();
        assert_eq!(event.event_type, provider.sample_type, "{}", provider.name);
        if event.trust != Trust::Digest {
            assert_eq!(event.id, ID, "{}", provider.name);
        }
        let object = provider.object.first().map(|_| provider.sample.object.as_ref());
        assert_eq!(event.object.as_deref(), object, "{}", provider.name);
        if !provider.version.is_empty() {
            assert_eq!(event.version, Some(now().as_millisecond()), "{}", provider.name);
        }
    }
}

#[test]
fn a_sample_may_have_any_type() {
    for provider in catalogue::ALL {
        // Its only type has a fixed beginning.
        if provider.name == "supabase-auth-hooks" {
            continue;
        }
        let event = SampleEvent { id: ID, event_type: "some.thing", at: now(), object: None };
        let draft = sample(provider, &event);
        let request = draft.request();
        let read = identify(provider, &request).unwrap();
        assert_eq!(read.event_type, "some.thing", "{}", provider.name);
    }
}

#[test]
fn a_changed_body_is_refused() {
    for provider in catalogue::ALL {
        let covers_body = provider.schemes[0].covers(&Field::Json("/any".into()));
        // Mailgun and tokens do not cover the body, and their notes say so.
        if !covers_body {
            assert!(["mailgun", "token"].contains(&provider.name.as_ref()), "{}", provider.name);
            continue;
        }
        let draft = signed_with(provider, SECRET);
        for place in 0..draft.body.len() {
            let mut forged = draft.clone();
            forged.body[place] ^= 1;
            refuse(provider, &forged, "a flipped bit");
        }
        for body in [b"".as_slice(), &draft.body[1..], &[&draft.body, b"\n".as_slice()].concat()] {
            refuse(provider, &Draft { body: body.to_vec(), ..draft.clone() }, "another length");
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
    for provider in catalogue::ALL {
        for forged in with_proofs(provider, forge) {
            refuse(provider, &forged, "another signature");
        }
    }
}

#[test]
fn needed_headers_are_there_once() {
    for provider in catalogue::ALL {
        let draft = signed_with(provider, SECRET);
        for name in needed_headers(provider) {
            let mut missing = draft.clone();
            missing.headers.remove(&name);
            let code = refuse(provider, &missing, "a missing header").code();
            assert!(["missing_header", "missing_timestamp"].contains(&code), "{name}: {code}");
            let code = refuse(provider, &with_header(&draft, &name, ""), "an empty header").code();
            assert!(["missing_header", "missing_timestamp"].contains(&code), "{name}: {code}");

            let mut repeated = draft.clone();
            let value = draft.headers[&name].clone();
            repeated.headers.append(name.parse::<http::HeaderName>().unwrap(), value);
            assert_eq!(refuse(provider, &repeated, "a repeat").code(), "repeated_header");

            let mut not_text = draft.clone();
            let bytes = HeaderValue::from_bytes(b"v1,\xff\xfe").unwrap();
            not_text.headers.insert(name.parse::<http::HeaderName>().unwrap(), bytes);
            assert_eq!(refuse(provider, &not_text, "bytes").code(), "malformed_header");

            let long = with_header(&draft, &name, &"a".repeat(4097));
            assert_eq!(refuse(provider, &long, "a long header").code(), "malformed_header");
        }
    }
}

#[test]
fn another_secret_is_refused() {
    for provider in catalogue::ALL {
        let draft = signed_with(provider, OTHER_SECRET);
        let code = refuse(provider, &draft, "another secret").code();
        assert!(["signature_mismatch", "wrong_token"].contains(&code), "{}: {code}", provider.name);

        let secrets = vec![Secret::new(SECRET), Secret::new(OTHER_SECRET)];
        let keyring = Keyring::new(provider, secrets).unwrap();
        let verified = verify(provider, &keyring, &draft.request(), now()).unwrap();
        assert_eq!(verified.secret, 1, "{}: the old secret still counts", provider.name);
    }
}

#[test]
fn another_algorithm_is_refused() {
    for provider in catalogue::ALL {
        let Scheme::Hmac(hmac) = &provider.schemes[0] else { continue };
        for algorithm in [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512] {
            if algorithm == hmac.algorithm {
                continue;
            }
            let mut weaker = (*provider).clone();
            let scheme = oncebox_verify::Hmac { algorithm, ..hmac.clone() };
            weaker.schemes = vec![Scheme::Hmac(scheme)].into();
            refuse(provider, &signed_with(&weaker, SECRET), "another algorithm");
        }
    }
}

#[test]
fn the_window_is_inclusive_and_has_two_sides() {
    for provider in catalogue::ALL {
        let Scheme::Hmac(hmac) = &provider.schemes[0] else { continue };
        let Some(stamp) = &hmac.timestamp else { continue };
        let draft = signed_with(provider, SECRET);
        let limit = i64::from(stamp.tolerance_secs);
        let at = |secs: i64| now() + SignedDuration::from_secs(secs);
        let code = |secs| check_at(provider, &draft, at(secs)).map_err(|r| r.code());
        assert_eq!(code(limit), Ok(0), "{}", provider.name);
        assert_eq!(code(-limit), Ok(0), "{}", provider.name);
        assert_eq!(code(limit + 1), Err("timestamp_too_old"), "{}", provider.name);
        assert_eq!(code(-limit - 1), Err("timestamp_too_new"), "{}", provider.name);
    }
}

#[test]
fn a_signed_id_cannot_be_changed() {
    for provider in catalogue::ALL {
        let draft = signed_with(provider, SECRET);
        let signed = identify(provider, &draft.request()).unwrap().trust == Trust::Signed;
        let Some(Identity::Field(Field::Header(name))) = provider.identity.first() else {
            continue;
        };
        let forged = with_header(&draft, name, "evt_0002");
        assert_eq!(check_at(provider, &forged, now()).is_err(), signed, "{}", provider.name);
    }
}

/// An id under Svix's names means nothing beside a signature under the standard's.
#[test]
fn an_id_of_the_other_family_is_not_believed() {
    let svix = catalogue::find("svix").unwrap();
    let standard = catalogue::find("standard-webhooks").unwrap();
    let draft = with_header(&signed_with(standard, SECRET), "svix-id", "evt_0002");
    assert_eq!(check_at(svix, &draft, now()), Ok(0));
    let event = identify(svix, &draft.request()).unwrap();
    assert_eq!((event.id.as_ref(), event.trust), (ID, Trust::Signed));
}

/// Each kind of GitLab secret counts only in its own place.
#[test]
fn a_gitlab_signing_token_is_no_password() {
    let gitlab = catalogue::find("gitlab").unwrap();
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
    let stripe = catalogue::find("stripe").unwrap();
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
    let supabase = catalogue::find("supabase-auth-hooks").unwrap();
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
    let twilio = catalogue::find("twilio").unwrap();
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
