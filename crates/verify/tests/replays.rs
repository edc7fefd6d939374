//! Captured requests that were rewritten until they look new, and still verify.

use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{
    Draft, Keyring, Provider, SampleEvent, Secret, Trust, catalogue, content_digest, guard_digest,
    identify, sample, sign, verify,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TOKEN: &str = "i-twilio-idempotency-token";

fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn later(secs: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + secs).unwrap()
}

fn signed(provider: &Provider, id: &str, at: Timestamp) -> Draft {
    let event = SampleEvent { id, event_type: "", at: now(), object: None };
    sign(provider, &Secret::new(SECRET), sample(provider, &event), at).unwrap()
}

fn is_accepted(provider: &Provider, draft: &Draft) -> bool {
    let keyring = Keyring::new(provider, vec![Secret::new(SECRET)]).unwrap();
    verify(provider, &keyring, &draft.request(), now()).is_ok()
}

/// The identity, how far it is trusted, and the guard.
fn known_by(provider: &Provider, draft: &Draft) -> (String, Trust, Option<[u8; 32]>) {
    let event = identify(provider, &draft.request()).unwrap();
    (event.id.into_owned(), event.trust, guard_digest(provider, &draft.request()))
}

fn twilio_draft(url: &str, content_type: &'static str, body: &str) -> Draft {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(content_type));
    let (method, url) = ("POST".to_owned(), url.to_owned());
    Draft { method, url, headers, body: body.as_bytes().to_vec() }
}

fn twilio_form(url: &str, body: &str) -> Draft {
    let draft = twilio_draft(url, "application/x-www-form-urlencoded", body);
    sign(find("twilio"), &Secret::new(SECRET), draft, now()).unwrap()
}

fn with_body(draft: &Draft, body: &str) -> Draft {
    Draft { body: body.as_bytes().to_vec(), ..draft.clone() }
}

fn with_token(draft: &Draft, token: &'static str) -> Draft {
    let mut draft = draft.clone();
    draft.headers.insert(TOKEN, HeaderValue::from_static(token));
    draft
}

/// It verifies, and is caught by the guard whatever id it claims.
#[track_caller]
fn assert_guarded(provider: &Provider, captured: &Draft, forged: &Draft) {
    assert!(is_accepted(provider, captured) && is_accepted(provider, forged), "{forged:?}");
    let (.., guard) = known_by(provider, captured);
    let (_, trust, again) = known_by(provider, forged);
    assert_ne!(trust, Trust::Signed, "{forged:?}");
    assert!(guard.is_some() && guard == again, "{forged:?}");
}

/// The same form in another order, another spelling, with a pair twice, and with other
/// places where names and values end.
const REWRITTEN: &[&str] = &[
    "From=X&CallSid=CA1",
    "CallSid=CA1&From=%58",
    "CallSid=CA1&From=X&From=X",
    "CallSid=CA1From&X=",
    "CallSidCA1FromX=",
    "&CallSid=CA1&&From=X",
];

#[test]
fn a_rewritten_twilio_form_is_the_same_content() {
    let twilio = find("twilio");
    let captured = twilio_form("https://example.com/in/twilio", "CallSid=CA1&From=X");
    let content = content_digest(twilio, &captured.request());
    let (id, trust, _) = known_by(twilio, &captured);
    assert_eq!((id, trust), (format!("sha256:{}", hex::encode(content)), Trust::Digest));
    for body in REWRITTEN {
        let forged = with_body(&captured, body);
        assert_eq!(content_digest(twilio, &forged.request()), content, "{body}");
        assert_eq!(known_by(twilio, &forged), known_by(twilio, &captured), "{body}");
        assert_guarded(twilio, &captured, &forged);
        assert_guarded(twilio, &captured, &with_token(&forged, "fresh"));
        assert_guarded(twilio, &with_token(&captured, "first"), &with_token(&forged, "fresh"));
    }
    let other = twilio_form("https://example.com/in/twilio", "CallSid=CA1&From=Y");
    assert_ne!(content_digest(twilio, &other.request()), content);
    assert_ne!(known_by(twilio, &other).2, known_by(twilio, &captured).2);
}

/// `SM1:se` would be a new id, were it believed to be signed.
#[test]
fn an_id_in_a_twilio_form_can_be_cut_short() {
    let twilio = find("twilio");
    let url = "https://example.com/in/twilio";
    let captured = twilio_form(url, "MessageSid=SM1&MessageStatus=sent");
    let forged = with_body(&captured, "MessageSid=SM1&MessageStatus=se&nt=");
    assert_ne!(known_by(twilio, &forged).0, known_by(twilio, &captured).0);
    assert_guarded(twilio, &captured, &forged);
}

/// The URL and the form are signed without anything between them either.
#[test]
fn a_twilio_form_can_move_into_its_url() {
    let twilio = find("twilio");
    let captured = twilio_form("https://example.com/in/twilio?a=b", "CallSid=CA1&From=X");
    let mut forged = with_body(&captured, "CA1From=X");
    forged.url.push_str("CallSid");
    assert_guarded(twilio, &captured, &with_token(&forged, "fresh"));

    let json = twilio_draft("https://example.com/in/twilio", "application/json", r#"{"a":1}"#);
    let json = sign(twilio, &Secret::new(SECRET), json, now()).unwrap();
    let (url, query) = json.url.split_once("?bodySHA256=").unwrap();
    let mut forged = twilio_draft(url, "application/x-www-form-urlencoded", "");
    forged.headers.insert("x-twilio-signature", json.headers["x-twilio-signature"].clone());
    forged.body = format!("%3FbodySHA256%3D{query}").into_bytes();
    assert_guarded(twilio, &json, &with_token(&forged, "fresh"));
}

/// Whoever sends a message chooses some of the characters that Twilio signs. In another order they
/// are an event in JSON.
#[test]
fn no_twilio_form_can_become_json() {
    let url = "https://example.com/in/twilio";
    let text = r#""}{"id":"evil","type":"x","rest":""#;
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("AccountSid", "AC1")
        .append_pair("Body", text)
        .append_pair("From", "+1")
        .finish();
    let captured = twilio_form(url, &body);
    let json = r#"{"id":"evil","type":"x","rest":"From%2B1&AccountSidAC1Body"}"#;
    for name in ["twilio", "twilio-json", "twilio-sharedkey"] {
        assert!(is_accepted(find(name), &captured));
        let mut forged = with_body(&captured, json);
        assert!(!is_accepted(find(name), &forged), "{name}");
        forged.headers.remove("content-type");
        assert!(!is_accepted(find(name), &forged), "{name}");
    }
    assert!(identify(find("twilio-json"), &captured.request()).is_err());
}

#[test]
fn a_port_makes_no_other_twilio_request() {
    let twilio = find("twilio");
    let captured = twilio_form("https://example.com/in/twilio", "CallSid=CA1&From=X");
    let url = "https://example.com:443/in/twilio".to_owned();
    let forged = Draft { url, ..with_token(&captured, "fresh") };
    assert_guarded(twilio, &captured, &forged);
}

#[test]
fn twilio_json_is_its_raw_body() {
    let twilio = find("twilio");
    let json = twilio_draft("https://example.com/in/twilio", "application/json", r#"{"a":1}"#);
    let json = sign(twilio, &Secret::new(SECRET), json, now()).unwrap();
    let raw: [u8; 32] = Sha256::digest(&json.body).into();
    assert_eq!(content_digest(twilio, &json.request()), raw);
    // Calling it a form changes nothing, for its hash is in the URL.
    let mut form = with_token(&json, "fresh");
    form.headers.remove("content-type");
    assert_eq!(content_digest(twilio, &form.request()), raw);
    assert_guarded(twilio, &json, &form);
}

fn mailgun_with(captured: &Draft, pointer: &str, value: &str) -> Draft {
    let mut body: Value = serde_json::from_slice(&captured.body).unwrap();
    *body.pointer_mut(pointer).unwrap() = value.into();
    with_body(captured, &body.to_string())
}

#[test]
fn a_mailgun_signature_is_good_for_one_event() {
    let mailgun = find("mailgun");
    let captured = signed(mailgun, "evt_1", now());
    let forged = mailgun_with(&captured, "/event-data/id", "evt_2");
    assert_guarded(mailgun, &captured, &forged);
    let forged = mailgun_with(&forged, "/event-data/event", "complained");
    assert_guarded(mailgun, &captured, &forged);

    // Other ways to write the token, and the body around it.
    let token: Value = serde_json::from_slice(&captured.body).unwrap();
    let token = token["signature"]["token"].as_str().unwrap().to_owned();
    let text = String::from_utf8(forged.body.clone()).unwrap();
    let escaped = format!("\\u{:04x}{}", token.as_bytes()[0], &token[1..]);
    assert_guarded(mailgun, &captured, &with_body(&forged, &text.replace(&token, &escaped)));
    assert_guarded(mailgun, &captured, &with_body(&forged, &format!(" {text}\n")));

    let other = signed(mailgun, "evt_2", now());
    assert_ne!(known_by(mailgun, &other).2, known_by(mailgun, &captured).2);
}

/// Whether or not Mailgun signs an attempt again.
#[test]
fn a_mailgun_retry_is_a_repeat() {
    let mailgun = find("mailgun");
    let first = signed(mailgun, "evt_1", now());
    let again = signed(mailgun, "evt_1", later(600));
    assert_ne!(first.body, again.body);
    assert_eq!(known_by(mailgun, &first).0, known_by(mailgun, &again).0);
    let content = content_digest(mailgun, &first.request());
    assert_eq!(content, content_digest(mailgun, &again.request()));
    let forged = mailgun_with(&first, "/event-data/event", "complained");
    assert_ne!(content, content_digest(mailgun, &forged.request()), "a conflict");
}

fn form(url: &str, body: &str) -> Draft {
    twilio_draft(url, "application/x-www-form-urlencoded", body)
}

fn sealed(provider: &Provider, draft: Draft) -> Draft {
    sign(provider, &Secret::new(SECRET), draft, now()).unwrap()
}

/// It verifies, and is the same event under the same name.
#[track_caller]
fn assert_repeat(provider: &Provider, captured: &Draft, forged: &Draft) {
    assert!(is_accepted(provider, captured) && is_accepted(provider, forged), "{forged:?}");
    let (id, ..) = known_by(provider, captured);
    assert_eq!(id, known_by(provider, forged).0, "{forged:?}");
    let content = |draft: &Draft| content_digest(provider, &draft.request());
    assert_eq!(content(captured), content(forged), "{forged:?}");
}

/// As with Twilio, and the border between the query and the form moves too.
#[test]
fn a_rewritten_plivo_form_is_known() {
    let plivo = find("plivo");
    let captured =
        sealed(plivo, form("https://example.com/in/plivo?a=1", "MessageUUID=m1&Status=sent"));
    for body in ["Status=sent&MessageUUID=m1", "MessageUUID=m1&Status=%73ent"] {
        assert_repeat(plivo, &captured, &with_body(&captured, body));
    }
    for body in
        ["MessageUUID=m1&Status=se&nt=", "MessageUUID=m1Status&sent=", "MessageUUIDm1Statussent"]
    {
        assert_guarded(plivo, &captured, &with_body(&captured, body));
    }
    let moved = Draft {
        url: "https://example.com/in/plivo?a=1.MessageUUIDm1Statussent".to_owned(),
        ..with_body(&captured, "")
    };
    assert_guarded(plivo, &captured, &moved);
    // Plivo's own next attempt has another nonce: another signature, the same event.
    let mut again = form("https://example.com/in/plivo?a=1", "MessageUUID=m1&Status=sent");
    again.headers.insert("x-plivo-signature-v3-nonce", HeaderValue::from_static("2"));
    assert_repeat(plivo, &captured, &sealed(plivo, again));
    let mut renamed = captured.clone();
    renamed.headers.insert("x-plivo-signature-v3-nonce", HeaderValue::from_static("2"));
    assert!(!is_accepted(plivo, &renamed));
}

#[test]
fn a_mercadopago_signature_is_good_for_one_event() {
    let provider = find("mercadopago");
    let captured = signed(provider, "1001", now());
    let text = String::from_utf8(captured.body.clone()).unwrap();
    assert_guarded(provider, &captured, &with_body(&captured, &text.replace("1001", "1002")));
    assert_guarded(provider, &captured, &with_body(&captured, "{}"));
    assert!(identify(provider, &with_body(&captured, "").request()).is_err());
    // An id of an object with letters is signed in lower case, and may be written in both.
    let url = "https://example.com/in/mp?data.id=abc".to_owned();
    let mut captured = captured;
    captured = sealed(provider, Draft { url, ..captured });
    let url = captured.url.replace("abc", "ABC");
    assert_guarded(provider, &captured, &Draft { url, ..with_body(&captured, r#"{"id":2}"#) });
    // One part cannot pass for two.
    let mut joined = captured.clone();
    joined.headers.remove("x-request-id");
    joined.url = joined.url.replace("abc", "abc;request-id:sample-request");
    assert!(!is_accepted(provider, &joined));
    joined.url = captured.url.replace("data.id=abc", "data.id=abc&data.id=abd");
    assert!(!is_accepted(provider, &joined));
}

#[test]
fn a_braintree_payload_is_one_event_in_every_spelling() {
    let braintree = find("braintree");
    let captured = signed(braintree, "sub_1", now());
    let text = String::from_utf8(captured.body.clone()).unwrap();
    assert_eq!(known_by(braintree, &captured).1, Trust::Signed);
    let unended = text.replace("%0A&", "&");
    assert_ne!(unended, text);
    let spellings = [
        unended.clone(),
        format!("{text}&more=1"),
        format!("a=b&{text}"),
        text.replace("%7C", "|"),
    ];
    for body in spellings {
        assert_repeat(braintree, &captured, &with_body(&captured, &body));
    }
    for body in [
        text.replace("%0A&", "%0A%0A&"),
        text.replace("%0A&", "%20&"),
        format!("{text}&bt_payload=x"),
        format!("{text}&bt_signature=x"),
        text.replace("bt_signature", "bt_signatura"),
    ] {
        assert!(!is_accepted(braintree, &with_body(&captured, &body)), "{body}");
    }
}

/// The name beside a signature must be the one of our key, where that is known.
#[test]
fn a_braintree_signature_is_found_by_its_key() {
    let braintree = find("braintree");
    let captured = signed(braintree, "sub_1", now());
    let check = |public: &str, draft: &Draft| {
        let settings = [("public_key".to_owned(), public.to_owned())].into();
        let secrets = vec![Secret::new(SECRET)];
        let keyring = Keyring::with_settings(braintree, secrets, settings).unwrap();
        verify(braintree, &keyring, &draft.request(), now()).map(|_| ()).map_err(|r| r.code())
    };
    assert_eq!(check("sample_public_key", &captured), Ok(()));
    assert_eq!(check("another_key", &captured), Err("no_known_scheme"));
    let text = String::from_utf8(captured.body.clone()).unwrap();
    let beside = text.replace("sample_public_key", "other%7C00%26sample_public_key");
    assert_eq!(check("sample_public_key", &with_body(&captured, &beside)), Ok(()));
    let many = "other%7C00%26".repeat(9);
    let many = with_body(&captured, &text.replace("sample_public_key", &format!("{many}x")));
    let keyring = Keyring::new(braintree, vec![Secret::new(SECRET)]).unwrap();
    let rejection = verify(braintree, &keyring, &many.request(), now()).unwrap_err();
    assert_eq!(rejection.code(), "too_many_signatures");
}

/// Twenty values without anything between them: `id` may take a digit from its neighbour, an
/// integer too, and from nothing else.
#[test]
fn a_rewritten_paymob_callback_is_known() {
    let paymob = find("paymob");
    let captured = signed(paymob, "1", now());
    let mut body: Value = serde_json::from_slice(&captured.body).unwrap();
    body["obj"]["more"] = "unsigned".into();
    assert_guarded(paymob, &captured, &with_body(&captured, &body.to_string()));
    body["obj"]["id"] = 19_203_646.into();
    body["obj"]["integration_id"] = 51.into();
    assert_guarded(paymob, &captured, &with_body(&captured, &body.to_string()));
    for (pointer, value) in [("/obj/id", "19203646"), ("/obj/created_at", "01-02T03:04:05.000000")]
    {
        let mut other = body.clone();
        *other.pointer_mut(pointer).unwrap() = value.into();
        assert!(!is_accepted(paymob, &with_body(&captured, &other.to_string())), "{pointer}");
    }
    body["obj"]["success"] = false.into();
    assert!(!is_accepted(paymob, &with_body(&captured, &body.to_string())));
}

#[test]
fn what_stands_around_the_content_of_exact_online_counts_for_nothing() {
    let exact = find("exact-online");
    let captured = signed(exact, "key-1", now());
    assert_eq!(known_by(exact, &captured).1, Trust::Signed);
    let text = String::from_utf8(captured.body.clone()).unwrap();
    let forged = with_body(&captured, &text.replacen('{', "{\"more\": 1, ", 1));
    assert!(is_accepted(exact, &forged));
    assert_eq!(known_by(exact, &captured).0, known_by(exact, &forged).0);
    let doubled = text.replacen("{", r#"{"Content":{"Topic":"x"},"#, 1);
    assert!(!is_accepted(exact, &with_body(&captured, &doubled)));
    assert!(!is_accepted(exact, &with_body(&captured, &text.replace("key-1", "key-2"))));
}

/// `sha256(secret + body)` can be lengthened by whoever knows one, but not into JSON.
#[test]
fn a_lengthened_hubspot_body_is_no_event() {
    let hubspot = find("hubspot");
    let body = r#"[{"eventId":1,"portalId":1,"subscriptionType":"a","occurredAt":1}]"#;
    let digest = Sha256::new().chain_update(SECRET).chain_update(body).finalize();
    let mut captured = twilio_draft("https://example.com/in/hubspot", "application/json", body);
    let signature = HeaderValue::from_str(&hex::encode(digest)).unwrap();
    captured.headers.insert("x-hubspot-signature", signature);
    assert!(!is_accepted(hubspot, &captured), "it counts on request only");
    let settings = [("scheme".to_owned(), "v1".to_owned())].into();
    let keyring = Keyring::with_settings(hubspot, vec![Secret::new(SECRET)], settings).unwrap();
    assert!(verify(hubspot, &keyring, &captured.request(), now()).is_ok());
    assert_eq!(known_by(hubspot, &captured).1, Trust::Signed);

    // What the hash pads with is the first thing behind the body, whatever is added after it.
    let mut lengthened = [captured.body.as_slice(), &[0x80, 0, 0, 0]].concat();
    lengthened.extend_from_slice(b",{}]");
    let lengthened = Draft { body: lengthened, ..captured };
    let malformed = identify(hubspot, &lengthened.request()).unwrap_err();
    assert_eq!(malformed.code(), "not_utf8");
}

/// The list of signed headers must be among them, or it could leave out the time.
#[test]
fn contentful_signs_what_it_lists() {
    let contentful = find("contentful");
    let captured = signed(contentful, "key_1", now());
    assert!(is_accepted(contentful, &captured));
    let with = |name: &'static str, value: &str| {
        let mut draft = captured.clone();
        draft.headers.insert(name, HeaderValue::from_str(value).unwrap());
        draft
    };
    let listed = "x-contentful-signed-headers";
    for forged in [
        with(listed, "x-contentful-timestamp"),
        with(listed, "content-type,x-contentful-signed-headers"),
        with(listed, "x-contentful-timestamp,x-contentful-signed-headers"),
        with(listed, "a b,x-contentful-timestamp,x-contentful-signed-headers"),
        with("x-contentful-timestamp", "1760000001000"),
        with("x-contentful-topic", "ContentManagement.Entry.delete"),
        with("x-contentful-idempotency-key", "key_2"),
        Draft { url: format!("{}?a=b", captured.url), ..captured.clone() },
        Draft { method: "PUT".to_owned(), ..captured.clone() },
        with_body(&captured, "{}"),
    ] {
        assert!(!is_accepted(contentful, &forged), "{forged:?}");
    }
    let keyring = Keyring::new(contentful, vec![Secret::new(SECRET)]).unwrap();
    let code = |secs| {
        let verified = verify(contentful, &keyring, &captured.request(), later(secs));
        verified.map(|_| ()).map_err(|rejection| rejection.code())
    };
    assert_eq!((code(30), code(-30)), (Ok(()), Ok(())));
    assert_eq!(code(31), Err("timestamp_too_old"));
    assert_eq!(code(-31), Err("timestamp_too_new"));
}

/// The stronger signature of Hook0 decides where it is there.
#[test]
fn a_wrong_v1_is_not_saved_by_a_right_v0() {
    let provider = find("coinbase-cdp");
    let captured = signed(provider, "1", now());
    let right = captured.headers["x-hook0-signature"].to_str().unwrap().to_owned();
    let mac = right.split_once("v0=").unwrap().1.to_owned();
    let with = |value: &str| {
        let mut draft = captured.clone();
        draft.headers.insert("x-hook0-signature", HeaderValue::from_str(value).unwrap());
        draft
    };
    let time = now().as_second();
    for value in [
        format!("{right},v1={}", "0".repeat(64)),
        format!("{right},v1={mac}"),
        format!("{right},h=content-type,v1={mac}"),
        format!("{right},v0={mac}"),
        format!("t={time},{right}"),
        format!("t={time},v2={mac}"),
        format!("v0={mac}"),
        format!("t={},v0={mac}", time + 1),
        format!("t={time},h=not a header\u{7f},v1={mac}").replace('\u{7f}', "("),
    ] {
        assert!(!is_accepted(provider, &with(&value)), "{value}");
    }
}

#[test]
fn secrets_are_compared_whole_and_named_by_little() {
    let (one, two) = (Secret::new("one"), Secret::new("two"));
    assert!(one.is_same(&Secret::new("one")) && !one.is_same(&two));
    assert_eq!(one.fingerprint(), Secret::new("one").fingerprint());
    assert_eq!(one.fingerprint().len(), 4);
}
