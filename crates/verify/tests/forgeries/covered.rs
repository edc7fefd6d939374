//! What a proof covers: the body, the time and the id.

use http::HeaderValue;
use jiff::SignedDuration;
use oncebox_verify::{
    Draft, Field, Identity, Scheme, Secret, TimeFormat, Trust, events, identify, sign,
};

use crate::case::{ID, SECRET, case, cases, check_at, none, now, refuse, signed, signed_with};
use crate::proof::with_header;

/// Where nothing is signed, the entry says so.
#[test]
fn a_body_of_another_length_is_refused() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let draft = signed(case);
        if !case.scheme.covers_body() {
            // What a signature leaves out is guarded, which `catalogue/negatives.rs` sees to. A
            // token covers nothing, and the operator must know.
            let words = ["signed", "body", "not what was sent", "not the content"];
            let warns = words.iter().any(|words| case.notes.contains(words));
            if matches!(case.scheme, Scheme::Token(_)) && !warns {
                wrong.push(format!("{}: {}", case.name, case.notes));
            }
            continue;
        }
        for body in [b"".as_slice(), &draft.body[1..], &[&draft.body, b"\n".as_slice()].concat()] {
            refuse(case, &Draft { body: body.to_vec(), ..draft.clone() }, "another length");
        }
    }
    none(&wrong);
}

#[test]
fn the_window_is_inclusive_and_has_two_sides() {
    for case in &cases() {
        let stamp = case.scheme.signature().and_then(|layout| layout.timestamp.as_ref());
        let Some(stamp) = stamp.filter(|stamp| stamp.format != TimeFormat::Nonce) else { continue };
        let draft = signed(case);
        let Some(limit) = stamp.tolerance_secs.map(i64::from) else { continue };
        let at = |secs: i64| now() + SignedDuration::from_secs(secs);
        let code = |secs| check_at(case, &draft, at(secs)).map_err(|r| r.code());
        assert_eq!(code(limit), Ok(0), "{}", case.name);
        assert_eq!(code(limit + 1), Err("timestamp_too_old"), "{}", case.name);
        // Clocks differ by minutes, however long retries may take.
        let ahead = limit.min(300);
        assert_eq!(code(-ahead), Ok(0), "{}", case.name);
        assert_eq!(code(-ahead - 1), Err("timestamp_too_new"), "{}", case.name);
    }
}

#[test]
fn a_signed_id_cannot_be_changed() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let draft = signed(case);
        let request = draft.request();
        let is_signed = events(case, &request).unwrap()[0].event.trust == Trust::Signed;
        let forged = match case.identity.first() {
            Some(Identity::Field(Field::Header(name))) => with_header(&draft, name, "evt_0002"),
            Some(Identity::Field(Field::Query(_))) => {
                Draft { url: draft.url.replace(ID, "evt_0002"), ..draft.clone() }
            }
            _ => continue,
        };
        // Contentful signs the headers it lists, so none is taken for signed.
        let is_listed = case.name == "contentful";
        if check_at(case, &forged, now()).is_err() != (is_signed || is_listed) {
            wrong.push(format!("{}: is it signed? {is_signed}", case.name));
        }
    }
    none(&wrong);
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
