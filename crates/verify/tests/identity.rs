//! Reading identities: what is found, what is refused, what is never lost.

use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox_verify::custom::HmacSettings;
use oncebox_verify::{
    Draft, Event, Keyring, Malformed, Provider, Request, SampleEvent, Secret, Trust, catalogue,
    content_digest, handshake, identify, sample, sign_with, verify,
};

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn request<'a>(headers: &'a HeaderMap, body: &'a [u8]) -> Request<'a> {
    Request { method: "POST", url: "/", headers, body }
}

fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

/// Identifies a body by the defaults of `hmac`: `/id` and `/type`.
fn read(body: &str) -> Result<(String, String), Malformed> {
    let headers = HeaderMap::new();
    let event = identify(find("hmac"), &request(&headers, body.as_bytes()))?;
    Ok((event.id.into_owned(), event.event_type.into_owned()))
}

fn code(body: &str) -> &'static str {
    read(body).expect_err(body).code()
}

fn owned(event: Event<'_>) -> (String, Trust, String, Option<String>, Option<i64>) {
    (
        event.id.into_owned(),
        event.trust,
        event.event_type.into_owned(),
        event.object.map(std::borrow::Cow::into_owned),
        event.version,
    )
}

#[test]
fn ids_keep_every_digit_and_letter() {
    let number = r#"{"id":820982911946154508123,"type":"a"}"#;
    assert_eq!(read(number).unwrap().0, "820982911946154508123");
    assert_eq!(read(r#"{"id":-1.50e3,"type":"a"}"#).unwrap().0, "-1.50e3");
    assert_eq!(read(r#"{"id":"caf\u00e9/😀","type":"a"}"#).unwrap().0, "café/😀");
    assert_eq!(read(r#" { "type" : "a" , "id" : "x" } "#).unwrap().0, "x");
    assert_eq!(read(r#"{"\u0069d":"x","type":"a"}"#).unwrap().0, "x");
}

/// A body is refused only where the identity cannot be read, or where other bodies could pass under
/// the same proof.
#[test]
fn a_body_that_nothing_is_read_of_may_be_anything() {
    let headers = HeaderMap::new();
    let event = identify(find("snyk"), &request(&headers, b"not JSON")).unwrap();
    assert_eq!(event.trust, Trust::Digest);
    let hashed = identify(find("recharge"), &request(&headers, b"{} not JSON"));
    assert_eq!(hashed.unwrap_err().code(), "not_json");
}

#[test]
fn a_missing_type_is_unknown() {
    assert_eq!(read(r#"{"id":"x"}"#).unwrap().1, "unknown");
    assert_eq!(read(r#"{"id":"x","type":null}"#).unwrap().1, "unknown");
    assert_eq!(read(r#"{"id":"x","type":{"a":1}}"#).unwrap().1, "unknown");
}

#[test]
fn what_cannot_be_a_key_is_refused() {
    for body in [r#"{"type":"a"}"#, r#"{"id":null}"#, "{}", "[]", r#"[{"id":"x"}]"#] {
        assert_eq!(code(body), "no_identity", "{body}");
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(513));
    let bad = [r#"{"id":""}"#, r#"{"id":true}"#, r#"{"id":[1]}"#, r#"{"id":"a\u0000b"}"#, &long];
    for body in bad {
        assert_eq!(code(body), "bad_value", "{body}");
    }
    assert_eq!(code(r#"{"id":"x","type":"a\nb"}"#), "bad_value");
    assert!(read(&format!(r#"{{"id":"{}"}}"#, "x".repeat(512))).is_ok());
}

#[test]
fn half_a_body_is_no_body() {
    for body in ["{", r#"{"id":"x""#, r#"{"id":"x"} x"#, r#"{"id":"x"}{}"#, r#"{"id":"x",}"#, ""] {
        assert_eq!(code(body), "not_json", "{body}");
    }
    assert_eq!(code(r#"{"id":"x","rest":[1,{"a":tru}]}"#), "not_json");
    for body in ["{}x", "[1,2"] {
        assert_eq!(code(body), "not_json", "{body}");
    }
    let json = headers(&[("content-type", "application/json")]);
    for body in ["1", r#""x""#, "null", "true"] {
        let malformed = identify(find("hmac"), &request(&json, body.as_bytes())).unwrap_err();
        assert_eq!(malformed.code(), "not_object", "{body}");
    }
    let malformed = identify(find("hmac"), &request(&json, b"{\"id\":\"\xff\"}")).unwrap_err();
    assert_eq!(malformed, Malformed::NotUtf8);
}

#[test]
fn a_key_we_read_is_there_once() {
    assert_eq!(code(r#"{"id":"x","id":"y"}"#), "duplicate_key");
    assert_eq!(code(r#"{"id":"x","\u0069d":"y"}"#), "duplicate_key");
    let stripe = find("stripe");
    let none = HeaderMap::new();
    let body = br#"{"id":"x","data":{"object":{"id":"a"}},"data":{"object":{"id":"b"}}}"#;
    let malformed = identify(stripe, &request(&none, body)).unwrap_err();
    assert_eq!(malformed, Malformed::DuplicateKey { key: "data".to_owned() });
}

#[test]
fn depth_is_limited_without_a_stack() {
    let nested = |depth: usize| {
        format!(r#"{{"id":"x","rest":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    assert!(read(&nested(127)).is_ok());
    for depth in [128, 10_000, 1_000_000] {
        assert_eq!(code(&nested(depth)), "too_deep");
        assert_eq!(code(&format!(r#"{{"rest":{}"#, r#"{"a":"#.repeat(depth))), "too_deep");
    }
    // Brackets inside text do not nest.
    assert!(read(&format!(r#"{{"id":"x","rest":"\"{}"}}"#, "[".repeat(1000))).is_ok());
    let wide = format!(r#"{{"id":"x","rest":[{}[]]}}"#, "[],".repeat(1000));
    assert!(read(&wide).is_ok());
}

#[test]
fn stripe_snapshots_and_thin_events() {
    let none = HeaderMap::new();
    let body = br#"{"id":"evt_1","object":"event","type":"invoice.paid","created":1759999990,
        "data":{"object":{"id":"in_1"}}}"#;
    let event = identify(find("stripe"), &request(&none, body)).unwrap();
    let version = Some(1_759_999_990_000);
    let expected = ("evt_1", Trust::Signed, "invoice.paid", Some("in_1"), version);
    let (id, trust, kind, object, version) = owned(event);
    assert_eq!((id.as_str(), trust, kind.as_str(), object.as_deref(), version), expected);

    let body = br#"{"id":"evt_2","type":"v1.billing.meter.error",
        "created":"2025-10-09T08:53:10.000Z","related_object":{"id":"mtr_1"}}"#;
    let event = identify(find("stripe"), &request(&none, body)).unwrap();
    assert_eq!(event.object.as_deref(), Some("mtr_1"));
    assert_eq!(event.version, version, "one moment, written in two ways");
}

#[test]
fn times_are_read_as_each_provider_writes_them() {
    let none = HeaderMap::new();
    let version = |time: &str| {
        let body =
            format!(r#"{{"object_kind":"issue","object_attributes":{{"updated_at":{time}}}}}"#);
        identify(find("gitlab"), &request(&none, body.as_bytes())).unwrap().version
    };
    let moment = Some(1_760_000_000_000);
    for time in ["2025-10-09T08:53:20Z", "2025-10-09 08:53:20 UTC", "2025-10-09T04:53:20.000-04:00"]
    {
        assert_eq!(version(&format!("\"{time}\"")), moment, "{time}");
    }
    assert_eq!(version("1760000000"), moment);
    for nothing in ["\"soon\"", "null", "true", "-5", "99999999999999999999", "\"\""] {
        assert_eq!(version(nothing), None, "{nothing}");
    }
}

#[test]
fn github_forms_hold_their_json_in_a_field() {
    let headers = headers(&[
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-github-delivery", "72d3162e"),
        ("x-github-event", "issues"),
    ]);
    let body = b"payload=%7B%22action%22%3A%22opened%22%2C%22issue%22%3A%7B%22id%22%3A1%7D%7D";
    let event = identify(find("github"), &request(&headers, body)).unwrap();
    assert_eq!(event.event_type, "issues.opened");
    assert_eq!(event.object.as_deref(), Some("1"));
    assert_eq!((event.id.as_ref(), event.trust), ("72d3162e", Trust::Transport));

    let twice = b"payload=%7B%7D&payload=%7B%7D";
    let malformed = identify(find("github"), &request(&headers, twice)).unwrap_err();
    assert_eq!(malformed.code(), "duplicate_key");
}

#[test]
fn a_repeated_id_header_is_refused() {
    let headers = headers(&[("x-github-delivery", "1"), ("x-github-delivery", "2")]);
    let malformed = identify(find("github"), &request(&headers, b"{}")).unwrap_err();
    assert_eq!(malformed.code(), "repeated_header");
}

/// The content type is not signed; changing it must not make another event.
#[test]
fn a_content_type_does_not_turn_json_into_a_form() {
    let form = headers(&[("content-type", "application/x-www-form-urlencoded")]);
    let body = br#"{"event_id":"Ev1","event":{"type":"app_mention"}}"#;
    assert_eq!(identify(find("slack"), &request(&form, body)).unwrap().id, "Ev1");
    let json = headers(&[("content-type", "application/json")]);
    let body = b"command=%2Fdeploy&trigger_id=398738663015.47";
    let malformed = identify(find("slack"), &request(&json, body)).unwrap_err();
    assert_eq!(malformed.code(), "not_json");
}

#[test]
fn slack_commands_are_known_by_their_trigger() {
    let none = HeaderMap::new();
    let body = b"command=%2Fdeploy&text=&channel_id=C1&trigger_id=398738663015.47";
    let (id, trust, kind, object, _) =
        owned(identify(find("slack"), &request(&none, body)).unwrap());
    assert_eq!((id.as_str(), trust), ("398738663015.47", Trust::Signed));
    assert_eq!((kind.as_str(), object.as_deref()), ("command:/deploy", Some("C1")));

    let body = br#"{"event_id":"Ev1","event":{"type":"channel_created","channel":{"id":"C2"}}}"#;
    let event = identify(find("slack"), &request(&none, body)).unwrap();
    assert_eq!(event.object.as_deref(), Some("C2"));
}

#[test]
fn a_twilio_call_without_a_sequence_is_known_by_its_body() {
    let none = HeaderMap::new();
    let read = |body: &'static [u8]| {
        let (id, trust, kind, ..) = owned(identify(find("twilio"), &request(&none, body)).unwrap());
        (id, trust, kind)
    };
    let (id, trust, kind) = read(b"MessageSid=SM1&MessageStatus=sent");
    assert_eq!((id.as_str(), trust, kind.as_str()), ("SM1:sent", Trust::Transport, "message.sent"));
    let (one, trust, _) = read(b"CallSid=CA1&CallStatus=in-progress&Digits=1");
    assert_eq!(trust, Trust::Digest);
    assert_ne!(one, read(b"CallSid=CA1&CallStatus=in-progress&Digits=2").0);
}

#[test]
fn mailgun_ids_are_in_the_body_and_still_unsigned() {
    let none = HeaderMap::new();
    let body = br#"{"signature":{},"event-data":{"event":"failed","severity":"permanent",
        "id":"C1","timestamp":1759999996.25}}"#;
    let (id, trust, kind, _, version) =
        owned(identify(find("mailgun"), &request(&none, body)).unwrap());
    assert_eq!((id.as_str(), trust, kind.as_str()), ("C1", Trust::Transport, "failed.permanent"));
    assert_eq!(version, Some(1_759_999_996_250));
}

#[test]
fn digests_leave_out_what_changes_between_attempts() {
    let linear = find("linear");
    let body = |time: &str| format!(r#"{{"a":1,"webhookTimestamp":{time},"b":[2]}}"#);
    let none = HeaderMap::new();
    let digest = |body: &str| content_digest(linear, &request(&none, body.as_bytes()));
    let first = digest(&body("1"));
    assert_eq!(first, digest(&body("22")));
    assert_ne!(first, digest(r#"{"a":2,"webhookTimestamp":1,"b":[2]}"#));
    // A body that cannot be read is taken whole.
    assert_ne!(digest("x"), digest("y"));
}

#[test]
fn an_id_in_a_header_is_signed_if_the_template_names_it() {
    let settings = |signed: &str| HmacSettings {
        event_id: "header:X-Id".to_owned(),
        signed: Some(signed.to_owned()),
        ..HmacSettings::default()
    };
    let headers = headers(&[("x-id", "1"), ("x-webhook-signature", "00")]);
    let trust = |signed: &str| {
        let provider = settings(signed).provider().unwrap();
        let trust = identify(&provider, &request(&headers, b"{}")).unwrap().trust;
        (trust, provider.guards_twins())
    };
    assert_eq!(trust("{body}"), (Trust::Transport, true));
    assert_eq!(trust("{header:x-ID}.{body}"), (Trust::Signed, false));
}

#[test]
fn a_handshake_sends_back_little() {
    let none = HeaderMap::new();
    let body = |challenge: &str| {
        format!(r#"{{"type":"url_verification","challenge":"{challenge}"}}"#).into_bytes()
    };
    let asked = |provider: &str, body: &[u8], verified: bool| {
        let keyring = Keyring::new(find(provider), vec![Secret::new("a secret")]).unwrap();
        handshake(find(provider), &keyring, &request(&none, body), verified)
    };
    let reply = asked("slack", &body("abc"), true).unwrap();
    assert_eq!((reply.status, reply.body.as_str()), (200, "abc"));
    assert!(asked("slack", &body("abc"), false).is_none(), "Slack signs its question");
    assert!(asked("slack", &body(&"a".repeat(1025)), true).is_none());
    assert!(asked("slack", b"{\"type\":\"event_callback\"}", true).is_none());
    assert!(asked("stripe", &body("abc"), true).is_none());
}

/// The next change of a payment is the same bytes as a retry of the last.
#[test]
fn a_thin_notice_is_never_a_repeat() {
    let form = headers(&[("content-type", "application/x-www-form-urlencoded")]);
    let notice = request(&form, b"id=tr_d0b0E3EA3v");
    let [first, second] =
        [(); 2].map(|()| owned(identify(find("mollie-classic"), &notice).unwrap()));
    assert_ne!(first.0, second.0);
    assert_eq!((first.1, first.3.as_deref()), (Trust::Digest, Some("tr_d0b0E3EA3v")));
    assert!(!find("mollie-classic").guards_twins());
}

#[test]
fn a_time_without_a_zone_is_utc() {
    let topic = headers(&[("x-wc-webhook-topic", "order.updated")]);
    let body = br#"{"id":727,"date_modified_gmt":"2025-10-09T08:53:20"}"#;
    let event = identify(find("woocommerce"), &request(&topic, body)).unwrap();
    assert_eq!(event.id, "order.updated:727:2025-10-09T08:53:20");
    assert_eq!(event.version, Some(1_760_000_000_000));
}

/// A source of Pusher may say which app it is for.
#[test]
fn what_names_another_app_is_refused() {
    let pusher = find("pusher");
    let secret = Secret::new("a secret of pusher");
    let settings = [("key".to_owned(), "app-1".to_owned())].into();
    let keyring = Keyring::with_settings(pusher, vec![secret], settings).unwrap();
    let now = jiff::Timestamp::UNIX_EPOCH;
    let event = SampleEvent { id: "1", event_type: "", at: now, object: None };
    let mut draft = sign_with(pusher, &keyring, sample(pusher, &event), now).unwrap();
    let code = |draft: &Draft| {
        verify(pusher, &keyring, &draft.request(), now).map(|_| ()).map_err(|r| r.code())
    };
    assert_eq!(code(&draft), Err("missing_header"));
    draft.headers.insert("x-pusher-key", http::HeaderValue::from_static("app-2"));
    assert_eq!(code(&draft), Err("wrong_token"));
    draft.headers.insert("x-pusher-key", http::HeaderValue::from_static("app-1"));
    assert_eq!(code(&draft), Ok(()));
}
