//! Requests that carry several events, or carry them inside a form or XML.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{
    Defect, Draft, Found, Guard, ITEMS_MAX, Identity, KeyForm, Keyring, Malformed, Payload,
    Provider, Request, SampleEvent, Scheme, Secret, Special, Trust, catalogue, events, identify,
    sample, sign, verify,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const SECRET: &str = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";

fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap_or_else(|| panic!("no provider {name}"))
}

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn draft(content_type: &str, body: impl Into<Vec<u8>>) -> Draft {
    Draft {
        method: "POST".to_owned(),
        url: "https://example.com/in/sample".to_owned(),
        headers: headers(&[("content-type", content_type)]),
        body: body.into(),
    }
}

fn json_draft(body: &Value) -> Draft {
    draft("application/json", body.to_string())
}

fn signed(provider: &Provider, draft: Draft) -> Draft {
    sign(provider, &Secret::new(SECRET), draft, now()).unwrap()
}

fn check(provider: &Provider, draft: &Draft) -> Result<(), &'static str> {
    let keyring = Keyring::new(provider, vec![Secret::new(SECRET)]).unwrap();
    let verified = verify(provider, &keyring, &draft.request(), now());
    verified.map(|_| ()).map_err(|rejection| rejection.code())
}

/// The ids of all events.
fn ids(provider: &Provider, body: &Value) -> Result<Vec<String>, &'static str> {
    let draft = json_draft(body);
    let found = events(provider, &draft.request()).map_err(|malformed| malformed.code())?;
    Ok(found.into_iter().map(|found| found.event.id.into_owned()).collect())
}

/// Identity, trust, type, object and version.
type Told = (String, Trust, String, Option<String>, Option<i64>);

fn told(found: &Found<'_>) -> Told {
    let event = &found.event;
    let object = event.object.as_deref().map(str::to_owned);
    (event.id.to_string(), event.trust, event.event_type.to_string(), object, event.version)
}

/// Entries whose events are not simply the body.
fn unusual() -> impl Iterator<Item = &'static Provider> {
    let takes = |scheme: &Scheme| match scheme {
        Scheme::Signature(signature) => {
            !signature.algorithm.is_asymmetric() && signature.key != KeyForm::Public
        }
        Scheme::Special(special) => ![Special::Sns, Special::Ebay].contains(special),
        Scheme::Token(_) => true,
        _ => false,
    };
    let unusual = |provider: &&Provider| {
        let plain = provider.payload == Payload::Body && provider.batches.is_empty();
        !plain && provider.settings.iter().all(|setting| !setting.needed)
    };
    catalogue::ALL.iter().copied().filter(unusual).filter(move |p| takes(&p.schemes[0]))
}

#[test]
fn a_signed_sample_is_one_event_of_the_batch() {
    let mut seen = 0;
    for provider in unusual() {
        let name = &provider.name;
        let asked = SampleEvent { id: "evt_0001", event_type: "", at: now(), object: None };
        let draft = signed(provider, sample(provider, &asked));
        assert_eq!(check(provider, &draft), Ok(()), "{name}: {draft:?}");
        let request = draft.request();
        let found = events(provider, &request).unwrap_or_else(|m| panic!("{name}: {m}"));
        assert_eq!(found.len(), 1, "{name}");
        let event = &found[0].event;
        assert_eq!(event.event_type, provider.sample_type, "{name}");
        let plain = [Trust::Digest, Trust::Transport].contains(&event.trust);
        assert!(event.id.contains("evt_0001") || plain, "{name}: {}", event.id);
        if !provider.identity.contains(&Identity::Each) {
            assert_eq!(identify(provider, &request).unwrap(), *event, "{name}");
        }
        seen += 1;
    }
    assert!(seen >= 12, "{seen}");
}

/// Two samples that differ in nothing but their id are two events.
#[test]
fn another_id_is_another_event() {
    for provider in unusual() {
        let id = |id: &str| {
            let asked = SampleEvent { id, event_type: "", at: now(), object: None };
            let draft = sample(provider, &asked);
            identify(provider, &draft.request()).unwrap().id.into_owned()
        };
        assert_ne!(id("evt_0001"), id("evt_0002"), "{}", provider.name);
    }
}

#[test]
fn every_item_has_its_own_bytes_and_content() {
    let hubspot = find("hubspot");
    let item = |id: i64, attempt: i64| {
        json!({"eventId": id, "portalId": 1, "subscriptionType": "contact.creation",
               "occurredAt": 1_760_000_000_000_i64, "objectId": 5, "attemptNumber": attempt})
    };
    let first = signed(hubspot, json_draft(&json!([item(1, 0), item(2, 0)])));
    assert_eq!(check(hubspot, &first), Ok(()));
    let again = signed(hubspot, json_draft(&json!([item(2, 1), item(3, 0)])));
    let (first, again) = (first.request(), again.request());
    let before = events(hubspot, &first).unwrap();
    let after = events(hubspot, &again).unwrap();
    assert_eq!(before[1].event, after[0].event, "a retry in other company");
    assert_eq!(before[1].content(hubspot, &first), after[0].content(hubspot, &again));
    assert_ne!(before[0].content(hubspot, &first), before[1].content(hubspot, &first));
    assert_eq!(before[0].bytes.as_ref(), item(1, 0).to_string().as_bytes());
    assert_eq!((before[0].item, before[1].item), (Some(0), Some(1)));
    let id = "1:1:contact.creation:5:1760000000000".to_owned();
    let expected =
        (id, Trust::Signed, "contact.creation".into(), Some("5".into()), Some(1_760_000_000_000));
    assert_eq!(told(&before[0]), expected);
    // What is signed needs no guard.
    assert_eq!(before[0].guard(hubspot, &first), None);
}

#[test]
fn meta_nests_changes_and_messages_in_entries() {
    let meta = find("meta");
    let change = json!({"field": "messages", "value": {"messages": [{"id": "wamid.1"}]}});
    let message = json!({"timestamp": 1_760_000_000_123_i64, "message": {"mid": "m_1"}});
    let body = json!({"object": "page", "entry": [
        {"id": "10", "time": 1, "changes": [change.clone(), change.clone()]},
        {"id": "11", "messaging": [message], "standby": []},
        {"id": "12", "time": 2, "changes": [change]},
    ]});
    let draft = json_draft(&body);
    let request = draft.request();
    let found = events(meta, &request).unwrap();
    let digest = hex::encode(found[0].content(meta, &request));
    let told: Vec<Told> = found.iter().map(told).collect();
    let changed = |id: &str, time: i64| {
        let kind = "page.messages".to_owned();
        (format!("{id}:{time}:{digest}"), Trust::Digest, kind, Some(id.to_owned()), None)
    };
    let time = Some(1_760_000_000_123);
    let messaged = ("m_1".to_owned(), Trust::Signed, "page".to_owned(), Some("11".into()), time);
    // Two changes in the same words at the same time are one.
    assert_eq!(told, [changed("10", 1), changed("10", 1), messaged, changed("12", 2)]);
}

#[test]
fn quickbooks_is_read_in_both_forms() {
    let quickbooks = find("quickbooks");
    let entity = |id: &str| {
        json!({"name": "Invoice", "id": id, "operation": "Update",
               "lastUpdated": "2025-10-09T08:53:20Z"})
    };
    let company = |realm: &str, entities: Value| json!({"realmId": realm, "dataChangeEvent": {"entities": entities}});
    let nested = json!({"eventNotifications": [
        company("1", json!([entity("5"), entity("6")])),
        company("2", json!([entity("5")])),
    ]});
    let rest = "Invoice:5:Update:2025-10-09T08:53:20Z";
    let sixth = "1:Invoice:6:Update:2025-10-09T08:53:20Z".to_owned();
    let expected = vec![format!("1:{rest}"), sixth, format!("2:{rest}")];
    assert_eq!(ids(quickbooks, &nested), Ok(expected));
    let flat = json!([{"id": "a", "type": "qbo.invoice.created.v1"}, {"id": "b"}]);
    assert_eq!(ids(quickbooks, &flat), Ok(vec!["a".to_owned(), "b".to_owned()]));
    // One that is no list is one event, wherever the list would be.
    assert_eq!(ids(quickbooks, &flat[0]), Ok(vec!["a".to_owned()]));
    let lone = json!({"eventNotifications": company("1", entity("5"))});
    assert_eq!(ids(quickbooks, &lone), Ok(vec![format!("1:{rest}")]));
}

#[test]
fn an_empty_batch_has_no_event() {
    for (name, body) in [
        ("hubspot", json!([])),
        ("quickbooks", json!([])),
        ("quickbooks", json!({"eventNotifications": []})),
        ("meta", json!({"object": "page", "entry": []})),
        ("meta", json!({"object": "page", "entry": [{"id": "2", "changes": [], "standby": []}]})),
        ("x", json!({"for_user_id": "7", "favorite_events": [], "follow_events": []})),
        ("xero", json!({"events": [], "firstEventSequence": 0, "entropy": "S0m3r4Nd0mt3xt"})),
        ("microsoft-graph", json!({"value": []})),
    ] {
        let draft = json_draft(&body);
        assert_eq!(events(find(name), &draft.request()), Ok(vec![]), "{name} {body}");
        assert_eq!(identify(find(name), &draft.request()).unwrap_err().code(), "no_identity");
    }
}

/// What we find no list in that we know is an event itself: acknowledged and dropped it would be
/// lost.
#[test]
fn an_entry_without_a_known_list_is_an_event() {
    let meta = find("meta");
    let unknown = json!({"id": "10", "time": 1, "hop_context": [{"app_id": 1}]});
    let beside = json!({"id": "11", "time": 2, "messaging": [], "new": [{"x": 1}]});
    let message = json!({"message": {"mid": "m_1"}});
    let known = json!({"id": "12", "messaging": [message], "new": [{"x": 1}]});
    let body = json!({"object": "page", "entry": [unknown, beside, known]});
    let draft = json_draft(&body);
    let request = draft.request();
    let found = events(meta, &request).unwrap();
    let told: Vec<_> = found.iter().map(told).collect();
    let digest = |n: usize| hex::encode(found[n].content(meta, &request));
    let ids: Vec<_> = told.iter().map(|told| told.0.clone()).collect();
    assert_eq!(ids, [format!("10:1:{}", digest(0)), format!("11:2:{}", digest(1)), "m_1".into()]);
    assert_eq!((told[0].2.as_str(), told[0].3.as_deref()), ("page", Some("10")));
    assert_eq!(found[1].bytes.as_ref(), beside.to_string().as_bytes());
    // Neither has an empty list that we know anything to say of another that is not empty.
    let other = json!({"for_user_id": "7", "favorite_events": [], "poll_events": [{"id": "p1"}]});
    let draft = json_draft(&other);
    let request = draft.request();
    let found = events(find("x"), &request).unwrap();
    assert_eq!((found.len(), found[0].item), (1, None));
    assert_eq!(ids_of(meta, &json!({"object": "page", "entry": [], "new": [{}]})), "no_identity");
    assert_eq!(ids_of(meta, &json!({"object": "page", "entry": [{}]})), "no_identity");
}

/// Why there are none.
fn ids_of(provider: &Provider, body: &Value) -> &'static str {
    ids(provider, body).unwrap_err()
}

/// What is neither a batch nor an event is refused aloud, never taken for an empty batch.
#[test]
fn what_is_no_batch_is_no_empty_batch() {
    for (name, body, code) in [
        ("meta", json!({}), "no_identity"),
        ("meta", json!({"object": "page"}), "no_identity"),
        ("meta", json!({"object": "page", "entry": null}), "no_identity"),
        ("meta", json!({"object": "page", "entry": 1}), "item_not_object"),
        ("meta", json!({"object": "page", "entry": ["x"]}), "item_not_object"),
        ("meta", json!({"object": "page", "entry": [[]]}), "item_not_object"),
        ("meta", json!({"entry": [{"id": "1", "changes": [null]}]}), "item_not_object"),
        ("meta", json!({"entry": [{"id": "1", "changes": "x"}]}), "item_not_object"),
        ("quickbooks", json!([1]), "item_not_object"),
        ("quickbooks", json!([{}]), "no_identity"),
        ("adyen", json!({"notificationItems": [{}]}), "no_identity"),
    ] {
        assert_eq!(ids(find(name), &body), Err(code), "{name} {body}");
    }
}

/// The digest of an item as an identity.
fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// One bad item among several: the good one is as it is alone, the bad one is found under its
/// digest, with what can be read of it.
#[test]
fn a_bad_item_is_found_under_its_digest() {
    let quickbooks = find("quickbooks");
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(513));
    let long_type = format!(r#"{{"id":"1","type":"{}"}}"#, "x".repeat(513));
    let long_object = format!(r#"{{"id":"1","intuitentityid":"{}"}}"#, "x".repeat(513));
    for (bad, defect) in [
        ("{}", Defect::EventId),
        (r#"{"id":""}"#, Defect::EventId),
        (r#"{"id":true}"#, Defect::EventId),
        (r#"{"id":"a\u0000b"}"#, Defect::EventId),
        (&long, Defect::EventId),
        (&long_type, Defect::EventType),
        (r#"{"id":"1","type":"a\u0000"}"#, Defect::EventType),
        (&long_object, Defect::ObjectId),
        (r#"{"id":"1","id":"2"}"#, Defect::Event),
        (r#"{"\u0069d":"1","id":"2"}"#, Defect::Event),
        (r#"[{"id":"1"}]"#, Defect::Event),
        ("null", Defect::Event),
        ("7", Defect::Event),
    ] {
        for body in [format!(r#"[{{"id":"good"}},{bad}]"#), format!(r#"[{bad},{{"id":"good"}}]"#)] {
            let bad_at = usize::from(body.starts_with(r#"[{"id":"good"}"#));
            let draft = draft("application/json", body);
            let request = draft.request();
            let found = events(quickbooks, &request).unwrap();
            let (good, found) = (&found[1 - bad_at], &found[bad_at]);
            assert_eq!((good.event.id.as_ref(), good.defect), ("good", None), "{bad}");
            assert_eq!((found.defect, found.event.trust), (Some(defect), Trust::Digest), "{bad}");
            assert_eq!(found.bytes.as_ref(), bad.as_bytes());
            assert_eq!(found.event.id, digest_of(bad.as_bytes()), "{bad}");
            assert_eq!(found.has_unreadable_type(), found.event.event_type == "unknown", "{bad}");
            assert_eq!(found.guard(quickbooks, &request), None);
        }
    }
    let bad =
        [("[{}]", "no_identity"), ("[7]", "item_not_object"), (&*format!("[{long}]"), "bad_value")];
    for (body, code) in bad {
        let draft = draft("application/json", body);
        assert_eq!(events(quickbooks, &draft.request()).unwrap_err().code(), code, "{body}");
    }
    // What is not JSON, or has two lists, cannot be taken apart.
    let twice = r#"{"eventNotifications":[],"eventNotifications":[{"realmId":"1"}]}"#;
    for (body, code) in [(r#"[{"id":"good"},{"id":"1",}]"#, "not_json"), (twice, "duplicate_key")] {
        let draft = draft("application/json", body);
        assert_eq!(events(quickbooks, &draft.request()).unwrap_err().code(), code);
    }
}

/// All of them bad: the request is still authentic.
#[test]
fn a_batch_of_bad_items_is_found_whole() {
    let draft = draft("application/json", r#"[7,{},{"id":true},7]"#);
    let request = draft.request();
    let found = events(find("quickbooks"), &request).unwrap();
    let ids: Vec<_> = found.iter().map(|found| found.event.id.to_string()).collect();
    let digests = ["7", "{}", r#"{"id":true}"#, "7"].map(|bad| digest_of(bad.as_bytes()));
    assert_eq!(ids, digests);
}

/// What holds the events may be what cannot be read.
#[test]
fn a_bad_entry_keeps_no_other_out() {
    let meta = find("meta");
    let message = json!({"message": {"mid": "m_1"}});
    for bad in [
        r#"7"#,
        r#"[]"#,
        r#"{"id":"2","changes":"x"}"#,
        r#"{"id":"2","changes":[{}],"changes":[{}]}"#,
    ] {
        let good = json!({"id": "1", "messaging": [message]});
        let body = format!(r#"{{"object":"page","entry":[{bad},{good}]}}"#);
        let draft = draft("application/json", body);
        let request = draft.request();
        let found = events(meta, &request).unwrap();
        assert_eq!(found.len(), 2, "{bad}");
        assert_eq!(found[0].event.id, digest_of(bad.as_bytes()));
        assert_eq!(
            (found[0].defect, found[0].bytes.as_ref()),
            (Some(Defect::Event), bad.as_bytes())
        );
        assert_eq!((found[1].event.id.as_ref(), found[1].defect), ("m_1", None));
    }
    // The holder's own id may be there twice: what it holds is found all the same.
    let body =
        format!(r#"{{"object":"page","entry":[{{"id":"1","id":"2","messaging":[{message},7]}}]}}"#);
    let draft = draft("application/json", body);
    let request = draft.request();
    let found = events(meta, &request).unwrap();
    assert_eq!(
        found.iter().map(|found| found.defect).collect::<Vec<_>>(),
        [Some(Defect::Event); 2]
    );
}

#[test]
fn the_number_of_events_is_limited() {
    let quickbooks = find("quickbooks");
    let many = |count: usize| {
        let items: Vec<String> = (0..count).map(|n| format!(r#"{{"id":"{n}"}}"#)).collect();
        draft("application/json", format!("[{}]", items.join(",")))
    };
    let most = many(ITEMS_MAX);
    assert_eq!(events(quickbooks, &most.request()).unwrap().len(), ITEMS_MAX);
    let more = many(ITEMS_MAX + 1);
    let limit = Err(Malformed::TooManyEvents { limit: ITEMS_MAX });
    assert_eq!(events(quickbooks, &more.request()), limit);
    // The limit holds for all nested lists together.
    let entry = format!(r#"{{"id":"1","changes":[{}]}}"#, vec!["{}"; 101].join(","));
    let nested =
        draft("application/json", format!(r#"{{"entry":[{}]}}"#, vec![entry; 100].join(",")));
    assert_eq!(events(find("meta"), &nested.request()), limit);
}

#[test]
fn depth_is_limited() {
    let quickbooks = find("quickbooks");
    let deep = |levels: usize| {
        let body = format!(r#"[{{"id":"1","x":{}{}}}]"#, "[".repeat(levels), "]".repeat(levels));
        let draft = draft("application/json", body);
        events(quickbooks, &draft.request()).map(|found| found.len()).map_err(|m| m.code())
    };
    assert_eq!(deep(126), Ok(1));
    assert_eq!(deep(127), Err("too_deep"));
    assert_eq!(deep(100_000), Err("too_deep"));
}

fn adyen_item(psp: &str, code: &str) -> Value {
    json!({"NotificationRequestItem": {
        "additionalData": {}, "pspReference": psp, "eventCode": code, "success": "true",
        "merchantAccountCode": "Acme", "merchantReference": "order:1", "eventDate": "2026",
        "amount": {"value": 1000, "currency": "EUR"}, "reason": "033899:1111:03/2030",
    }})
}

#[test]
fn every_item_of_adyen_must_be_signed() {
    let adyen = find("adyen");
    let body = json!({"live": "false", "notificationItems": [
        adyen_item("PSP1", "AUTHORISATION"), adyen_item("PSP2", "CAPTURE"),
    ]});
    let genuine = signed(adyen, json_draft(&body));
    assert_eq!(check(adyen, &genuine), Ok(()));
    let read: Value = serde_json::from_slice(&genuine.body).unwrap();
    let item = "NotificationRequestItem";

    let mut changed = read.clone();
    changed["notificationItems"][1][item]["amount"]["value"] = 1.into();
    assert_eq!(check(adyen, &json_draft(&changed)), Err("signature_mismatch"));
    let mut unsigned = read.clone();
    unsigned["notificationItems"].as_array_mut().unwrap().push(adyen_item("PSP3", "REFUND"));
    assert_eq!(check(adyen, &json_draft(&unsigned)), Err("unreadable_body"));
    let mut borrowed = read.clone();
    let signature = read["notificationItems"][0][item]["additionalData"].clone();
    borrowed["notificationItems"][1][item]["additionalData"] = signature;
    assert_eq!(check(adyen, &json_draft(&borrowed)), Err("signature_mismatch"));
    for empty in [json!({"notificationItems": []}), json!({}), json!([])] {
        assert_eq!(check(adyen, &json_draft(&empty)), Err("unreadable_body"), "{empty}");
    }
}

/// Items can be cut out of a captured batch, put in another order, and changed where nothing is
/// signed. None of that makes a new event.
#[test]
fn a_rewritten_item_of_adyen_is_known() {
    let adyen = find("adyen");
    assert_eq!(adyen.guard, Guard::Signed);
    let body = json!({"notificationItems": [
        adyen_item("PSP1", "AUTHORISATION"), adyen_item("PSP2", "CAPTURE"),
    ]});
    let genuine = signed(adyen, json_draft(&body));
    let read: Value = serde_json::from_slice(&genuine.body).unwrap();
    let (first, second) = (&read["notificationItems"][0], &read["notificationItems"][1]);
    let guards = |draft: &Draft| -> Vec<(String, Option<[u8; 32]>)> {
        let request = draft.request();
        let found = events(adyen, &request).unwrap();
        found.iter().map(|f| (f.event.id.to_string(), f.guard(adyen, &request))).collect()
    };
    let known = guards(&genuine);
    assert!(known.iter().all(|(_, guard)| guard.is_some()));
    assert_ne!(known[0].1, known[1].1, "items of one batch are no twins");

    let swapped = json_draft(&json!({"notificationItems": [second, first]}));
    assert_eq!(check(adyen, &swapped), Ok(()));
    assert_eq!(guards(&swapped), [known[1].clone(), known[0].clone()]);

    // A colon in a value lets the border move, and with it the id.
    let mut shifted = first.clone();
    let item = &mut shifted["NotificationRequestItem"];
    item["reason"] = "changed".into();
    item["pspReference"] = "PSP1:".into();
    item["originalReference"] = "Acme".into();
    item["merchantAccountCode"] = "order".into();
    item["merchantReference"] = "1".into();
    let shifted = json_draft(&json!({"notificationItems": [shifted]}));
    assert_eq!(check(adyen, &shifted), Ok(()));
    let (id, guard) = guards(&shifted).remove(0);
    assert_ne!(id, known[0].0);
    assert_eq!(guard, known[0].1);
    let request = shifted.request();
    assert_eq!(events(adyen, &request).unwrap()[0].event.trust, Trust::Transport);
}

#[test]
fn every_item_of_graph_must_know_the_state() {
    let graph = find("microsoft-graph");
    let item = |state: &str| json!({"subscriptionId": "s", "clientState": state, "id": "1"});
    let both = |one: &str, other: &str| json_draft(&json!({"value": [item(one), item(other)]}));
    assert_eq!(check(graph, &both(SECRET, SECRET)), Ok(()));
    assert_eq!(check(graph, &both(SECRET, "other")), Err("wrong_token"));
    assert_eq!(check(graph, &both("", SECRET)), Err("wrong_token"));
    for body in [json!({"value": [{}]}), json!({"value": []}), json!({}), json!([])] {
        assert_eq!(check(graph, &json_draft(&body)), Err("unreadable_body"), "{body}");
    }
    // A state beside the list vouches for nothing in it.
    let beside = json!({"clientState": SECRET, "value": [{"id": "1"}]});
    assert_eq!(check(graph, &json_draft(&beside)), Err("unreadable_body"));
}

fn form(pairs: &[(&str, &str)]) -> Draft {
    let body =
        form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes();
    draft("application/x-www-form-urlencoded", body)
}

#[test]
fn mandrill_has_its_batch_in_a_form() {
    let mandrill = find("mandrill");
    let batch = r#"[{"event":"open","ts":1760000000,"_id":"a"},
                    {"event":"click","ts":1760000001,"_id":"a"},
                    {"type":"blacklist","action":"add","ts":1760000002}]"#;
    let genuine = signed(mandrill, form(&[("mandrill_events", batch)]));
    assert_eq!(check(mandrill, &genuine), Ok(()));
    let request = genuine.request();
    let found = events(mandrill, &request).unwrap();
    let told: Vec<Told> = found.iter().map(told).collect();
    let object = || Some("a".to_owned());
    let opened = ("a:open:1760000000".to_owned(), Trust::Signed, "open".to_owned(), object());
    assert_eq!(told[0], (opened.0, opened.1, opened.2, opened.3, Some(1_760_000_000_000)));
    assert_eq!(told[1].0, "a:click:1760000001");
    assert_eq!((told[2].1, told[2].2.as_str()), (Trust::Digest, "blacklist.add"));
    assert_eq!(found[0].bytes, Cow::from(br#"{"event":"open","ts":1760000000,"_id":"a"}"#));

    let bare = draft("application/json", batch);
    assert_eq!(check(mandrill, &signed(mandrill, bare)), Err("unreadable_body"));

    // The same in another spelling is the same, a part of it is nothing.
    let body = String::from_utf8(genuine.body.clone()).unwrap();
    let respelt = Draft { body: body.replace('a', "%61").into_bytes(), ..genuine.clone() };
    let respelt = Draft { body: [b"&", respelt.body.as_slice()].concat(), ..respelt };
    assert_eq!(check(mandrill, &respelt), Ok(()));
    assert_eq!(events(mandrill, &respelt.request()), Ok(found.clone()));
    let cut = body.replacen("%2C%0A", "&mandrill_eventt=", 1);
    let cut = Draft { body: cut.into_bytes(), ..genuine.clone() };
    assert_eq!(check(mandrill, &cut), Err("signature_mismatch"));
    for (body, code) in [("", "no_identity"), ("[", "not_json"), ("[1]", "item_not_object")] {
        let draft = form(&[("mandrill_events", body)]);
        let told = events(mandrill, &draft.request()).map_err(|malformed| malformed.code());
        assert!(told == Err(code) || body.is_empty() && told == Err("not_json"), "{body}");
    }
    let twice = form(&[("mandrill_events", "[]"), ("mandrill_events", batch)]);
    assert_eq!(events(mandrill, &twice.request()).unwrap_err().code(), "duplicate_key");
    // Where a name ends is not signed, so the field may come under another name.
    let renamed = body.replacen("events=", "event=s", 1);
    let renamed = Draft { body: renamed.into_bytes(), ..signed(mandrill, genuine) };
    assert_eq!(check(mandrill, &renamed), Ok(()));
    assert_eq!(events(mandrill, &renamed.request()).unwrap_err().code(), "no_identity");
}

#[test]
fn salesforce_has_its_batch_in_soap() {
    let salesforce = find("salesforce-outbound");
    let notice = |id: &str, object: &str| {
        format!(
            "<Notification><Id>{id}</Id><sObject><sf:Id>{object}</sf:Id></sObject></Notification>"
        )
    };
    let soap = |inside: &str| {
        let body = format!(
            r#"<?xml version="1.0"?><s:Envelope xmlns:s="urn:s" xmlns:sf="urn:sf"><s:Body>
               <notifications xmlns="urn:o">{inside}</notifications></s:Body></s:Envelope>"#
        );
        draft("text/xml", body)
    };
    let (one, other) = (notice("04l1", "003A"), notice("04l2", "003B"));
    let both = soap(&format!("<OrganizationId>1</OrganizationId>{one}\n{other}"));
    let request = both.request();
    let found = events(salesforce, &request).unwrap();
    assert_eq!(found.len(), 2);
    let expected =
        ("04l2".to_owned(), Trust::Transport, "unknown".to_owned(), Some("003B".to_owned()), None);
    assert_eq!(told(&found[1]), expected);
    assert_eq!(found[1].bytes, Cow::from(other.as_bytes()));
    assert_ne!(found[0].guard(salesforce, &request), found[1].guard(salesforce, &request));

    assert_eq!(events(salesforce, &soap("").request()), Ok(vec![]));
    let code = |draft: &Draft| events(salesforce, &draft.request()).unwrap_err().code();
    assert_eq!(code(&soap("<Notification/>")), "no_identity");
    assert_eq!(code(&soap("<Notification><Id>1</Id><Id>2</Id></Notification>")), "duplicate_key");
    assert_eq!(code(&soap(&"<Notification/>".repeat(ITEMS_MAX + 1))), "too_many_events");
    assert_eq!(code(&draft("text/xml", "<other/>")), "no_identity");
    assert_eq!(code(&draft("text/xml", "{}")), "not_xml");
    assert_eq!(code(&draft("text/xml", &b"<a>\xff</a>"[..])), "not_utf8");
    let dtd = r#"<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>"#;
    assert_eq!(code(&draft("text/xml", dtd)), "not_xml");
}

/// Every list that is there is read, and its events are called by its name, not by that of another
/// list or of what is beside them.
#[test]
fn lists_beside_each_other_are_all_read() {
    let x = find("x");
    let body = json!({"for_user_id": "7", "a_novelty": {},
        "follow_events": [{"id": "1"}], "favorite_events": [{"id": "1"}, {"id": "2"}]});
    let draft = json_draft(&body);
    let request = draft.request();
    let found = events(x, &request).unwrap();
    let told: Vec<_> =
        found.iter().map(|found| (&*found.event.id, &*found.event.event_type)).collect();
    let (follow, favorite) = ("follow_events", "favorite_events");
    let expected = [
        ("1:7:favorite_events", favorite),
        ("2:7:favorite_events", favorite),
        ("1:7:follow_events", follow),
    ];
    assert_eq!(told, expected);
    let items: Vec<_> = found.iter().map(|found| found.item).collect();
    assert_eq!(items, [Some(0), Some(1), Some(2)]);
    // The limit holds for all of them together.
    let most = vec![json!({"id": 1}); ITEMS_MAX];
    let body = json!({"for_user_id": "7", "follow_events": most, "favorite_events": [{"id": "2"}]});
    assert_eq!(ids(x, &body), Err("too_many_events"));
}

#[test]
fn lists_of_x_are_told_by_their_name() {
    let x = find("x");
    let body = json!({"for_user_id": "7", "favorite_events": [{"id": "f1"}, {"id": "f2"}]});
    assert_eq!(
        ids(x, &body),
        Ok(vec!["f1:7:favorite_events".to_owned(), "f2:7:favorite_events".to_owned()])
    );
    let draft = json_draft(&json!({"user_event": {"revoke": {"date_time": "2026"}}}));
    let request = draft.request();
    let found = events(x, &request).unwrap();
    assert_eq!(
        (found[0].event.trust, found[0].event.event_type.as_ref()),
        (Trust::Digest, "user_event")
    );
}

/// Whatever is in a request, reading it ends, and only for a reason that has a name.
#[test]
fn hostile_payloads_have_no_way_in() {
    let bodies: &[&[u8]] = &[
        b"",
        b" ",
        b"[",
        b"]",
        b"[[",
        b"{}",
        b"[{}]",
        b"[[]]",
        b"null",
        b"0",
        b"\"x\"",
        b"\xff",
        b"[{\"a\":1},]",
        b"{\"value\":[{]}",
        b"{\"entry\":[{\"changes\":[{\"field\":",
        b"<",
        b"<a",
        b"<a>",
        b"<?xml",
        b"&",
        b"=",
        b"%",
        b"bt_payload=",
        b"bt_payload=%%%",
        b"bt_payload=PGE",
        b"bt_payload=PGE%2B",
        b"mandrill_events=%5B%5D",
        b"a.b.c",
        b"..",
        b"a.e30.c",
    ];
    for provider in catalogue::ALL.iter() {
        for body in bodies {
            for kind in ["application/json", "application/x-www-form-urlencoded", "text/xml"] {
                let headers = headers(&[("content-type", kind)]);
                let request = Request { method: "POST", url: "/", headers: &headers, body };
                if let Err(malformed) = events(provider, &request) {
                    assert!(Malformed::CODES.contains(&malformed.code()));
                }
            }
        }
    }
}
