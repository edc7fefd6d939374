//! Attacks that were found on single entries, tried on every entry of the catalogue: a captured
//! request that still verifies once it was changed is refused, or known for what it is.

use std::collections::BTreeMap;

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use oncebox_verify::{
    Algorithm, Draft, Encoding, Field, Found, Guard, Identity, Keyring, OddAct, Part, Place,
    Provider, Scheme, Secret, Settings, Signature, catalogue, events, sign_with, verify,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::case::{Case, draft, none, now, played, signed};
use crate::extension;
use crate::proof::with_header;

/// What a store knows an event by.
struct Mark {
    id: String,
    content: [u8; 32],
    guard: Option<[u8; 32]>,
}

/// The events of a request; none where it is refused.
fn marks(provider: &Provider, keyring: &Keyring, draft: &Draft) -> Option<Vec<Mark>> {
    let request = draft.request();
    verify(provider, keyring, &request, now()).ok()?;
    let found = events(provider, &request).ok()?;
    let mark = |found: &Found<'_>| Mark {
        id: found.event.id.to_string(),
        content: found.content(provider, &request),
        guard: found.guard(provider, &request),
    };
    Some(found.iter().map(mark).collect())
}

/// Whether every event of the forged request is refused, held, or one that was there before.
fn is_known(provider: &Provider, keyring: &Keyring, genuine: &Draft, forged: &Draft) -> bool {
    let known = marks(provider, keyring, genuine).expect("the original is genuine");
    let holds_conflicts = provider.odd().conflicts.act == OddAct::Hold;
    let is_one = |mark: &Mark| {
        known.iter().any(|known| {
            let is_twin = mark.guard.is_some() && known.guard == mark.guard;
            let is_same = known.content == mark.content || holds_conflicts;
            is_twin || known.id == mark.id && is_same
        })
    };
    marks(provider, keyring, forged).is_none_or(|forged| forged.iter().all(is_one))
}

/// Whether every request is an event by intent.
fn is_each(provider: &Provider) -> bool {
    provider.identity.contains(&Identity::Each) || provider.guard == Guard::Nothing
}

/// The draft under every content type that would have it read in another way.
fn retyped(draft: &Draft) -> Vec<Draft> {
    let kinds = [
        None,
        Some("application/json"),
        Some("application/x-www-form-urlencoded"),
        Some("text/plain"),
        Some("multipart/form-data; boundary=x"),
    ];
    let retype = |kind: Option<&'static str>| {
        let mut draft = draft.clone();
        match kind {
            Some(kind) => drop(draft.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind))),
            None => drop(draft.headers.remove(CONTENT_TYPE)),
        }
        draft
    };
    std::iter::once(draft.clone()).chain(kinds.map(retype)).collect()
}

#[test]
fn another_content_type_makes_no_other_event() {
    let mut wrong = Vec::new();
    for case in played().iter().filter(|case| !is_each(case)) {
        let genuine = signed(case);
        for forged in retyped(&genuine) {
            if !is_known(case, &case.checks, &genuine, &forged) {
                let kind = forged.headers.get(CONTENT_TYPE);
                wrong.push(format!("{}: a new event as {kind:?}", case.name));
            }
        }
    }
    none(&wrong);
}

/// The text of the time of a request, and the request with another one.
fn stamp_of(signature: &Signature, draft: &Draft) -> Option<String> {
    match &signature.timestamp.as_ref()?.place {
        Place::Header(name) => Some(draft.headers.get(name.as_ref())?.to_str().unwrap().to_owned()),
        Place::Label { header, label, separators } => {
            let value = draft.headers.get(header.as_ref())?.to_str().unwrap();
            let mut items = value.split(|c| separators.contains(c));
            items.find_map(|item| item.trim().strip_prefix(&format!("{label}=")).map(str::to_owned))
        }
        _ => None,
    }
}

fn with_stamp(signature: &Signature, draft: &Draft, old: &str, new: &str) -> Option<Draft> {
    HeaderValue::from_str(new).ok()?;
    match &signature.timestamp.as_ref()?.place {
        Place::Header(name) => Some(with_header(draft, name, new)),
        Place::Label { header, label, .. } => {
            let value = draft.headers.get(header.as_ref())?.to_str().unwrap();
            let value = value.replace(&format!("{label}={old}"), &format!("{label}={new}"));
            Some(with_header(draft, header, &value))
        }
        _ => None,
    }
}

/// Every other way to cut what is signed into a time and a body. `time` comes first or last.
fn cuts(time: &str, between: &str, body: &[u8], time_first: bool) -> Vec<(String, Vec<u8>)> {
    let (first, second) = match time_first {
        true => (time.as_bytes(), body),
        false => (body, time.as_bytes()),
    };
    let whole = [first, between.as_bytes(), second].concat();
    let mut cuts = Vec::new();
    for at in 0..=whole.len() - between.len() {
        if at == first.len() || !whole[at..].starts_with(between.as_bytes()) {
            continue;
        }
        let (before, after) = (&whole[..at], &whole[at + between.len()..]);
        let (time, body) = if time_first { (before, after) } else { (after, before) };
        // No header is that long.
        if let (Ok(time), true) = (std::str::from_utf8(time), time.len() < 200) {
            cuts.push((time.to_owned(), body.to_vec()));
        }
    }
    cuts
}

/// What stands between the time and the body, and whether the time comes first. None where
/// something else of the request does.
fn boundary(signature: &Signature) -> Option<(String, bool)> {
    let time = signature.signed.iter().position(|part| *part == Part::Timestamp)?;
    let body = signature.signed.iter().position(|part| *part == Part::Body)?;
    let (from, to) = (time.min(body) + 1, time.max(body));
    let texts: Option<String> = signature.signed[from..to]
        .iter()
        .map(|part| match part {
            Part::Text(text) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    Some((texts?, time < body))
}

/// The draft under an id of its own in every header that an id is read from: a body that lost its
/// id is looked for there.
fn renamed(provider: &Provider, draft: &Draft) -> Draft {
    let names = provider.identity.iter().filter_map(|identity| match identity {
        Identity::Field(Field::Header(name)) => Some(name),
        _ => None,
    });
    names.fold(draft.clone(), |draft, name| with_header(&draft, name, "another"))
}

#[test]
fn no_character_moves_between_time_and_body() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for case in played().iter().filter(|case| !is_each(case)) {
        let Some(signature) = case.scheme.signature() else { continue };
        let Some((between, time_first)) = boundary(signature) else { continue };
        let genuine = signed(case);
        let Some(time) = stamp_of(signature, &genuine) else { continue };
        for (new, body) in cuts(&time, &between, &genuine.body, time_first) {
            let Some(moved) = with_stamp(signature, &genuine, &time, &new) else { continue };
            let moved = Draft { body, ..moved };
            for forged in [retyped(&moved), retyped(&renamed(case, &moved))].concat() {
                tried += 1;
                if !is_known(case, &case.checks, &genuine, &forged) {
                    wrong.push(format!("{}: the time is `{new}`", case.name));
                }
            }
        }
    }
    assert!(tried > 2_000, "{tried}");
    none(&wrong);
}

/// Hook0 signs headers between the time and the body, and in an older version nothing.
#[test]
fn signed_headers_are_no_part_of_a_body() {
    let mut wrong = Vec::new();
    for case in played().iter().filter(|case| case.scheme.name() == "hook0") {
        let bare = with_header(&draft(case), "x-event-id", "e1");
        // What `v1` signs is what `v0` signs of a longer body.
        let longer = [b"x-event-id.e1.".as_slice(), &bare.body].concat();
        let longer = Draft { body: longer, ..bare.clone() };
        let as_v0 = sign_with(case, &case.signs, longer, now()).unwrap();
        let value = as_v0.headers["x-hook0-signature"].to_str().unwrap();
        let value = format!("{},h=x-event-id", value.replace("v0=", "v1="));
        let genuine = with_header(&bare, "x-hook0-signature", &value);
        for forged in retyped(&as_v0) {
            if !is_known(case, &case.checks, &genuine, &forged) {
                wrong.push(format!("{}: signed headers pass for a body", case.name));
            }
        }
    }
    none(&wrong);
}

/// The scheme whose plain hash begins with the secret and ends with the body, if an entry has one.
fn lengthened(provider: &'static Provider) -> impl Iterator<Item = &'static Signature> {
    let signatures = provider.schemes.iter().filter_map(Scheme::signature);
    signatures.filter(|signature| {
        let (first, last) = (signature.signed.first(), signature.signed.last());
        signature.algorithm == Algorithm::Sha256
            && first == Some(&Part::Secret)
            && last == Some(&Part::Body)
    })
}

/// From `SHA256(secret + body)` an attacker computes that of a longer body without the secret.
#[test]
fn a_body_is_not_lengthened() {
    const SECRET: &str = "a-secret-that-is-not-known-0123456789";
    let mut tried = 0;
    let mut wrong = Vec::new();
    for provider in catalogue::ALL.iter().copied() {
        for signature in lengthened(provider) {
            let Place::Header(name) = &signature.place else { panic!("{}", provider.name) };
            let settings = Settings::from([("scheme".to_owned(), "any".to_owned())]);
            let secrets = vec![Secret::new(SECRET)];
            let keyring = Keyring::with_settings(provider, secrets, settings).unwrap();
            let bare = draft(provider);
            let before: String = signature
                .signed
                .iter()
                .map(|part| match part {
                    Part::Secret => SECRET.to_owned(),
                    Part::Method => "POST".to_owned(),
                    Part::Url => bare.url.clone(),
                    _ => String::new(),
                })
                .collect();
            let whole = [before.as_bytes(), &bare.body].concat();
            let tag: [u8; 32] = Sha256::digest(&whole).into();
            let genuine = with_header(&bare, name, &hex::encode(tag));
            for suffix in [&b""[..], b",", b"}", br#","extra":1}"#, br#"{"id":"evil"}"#] {
                let (padding, longer) = extension::of(tag, whole.len(), suffix);
                let body = [&bare.body, &padding[..], suffix].concat();
                let forged = with_header(&genuine, name, &hex::encode(longer));
                for forged in retyped(&Draft { body, ..forged }) {
                    let proven = verify(provider, &keyring, &forged.request(), now());
                    assert!(proven.is_ok(), "{}: the hash is right", provider.name);
                    tried += 1;
                    if !is_known(provider, &keyring, &genuine, &forged) {
                        wrong.push(format!("{}: a longer body is a new event", provider.name));
                    }
                }
            }
        }
    }
    assert!(tried >= 60, "{tried}");
    none(&wrong);
}

/// The pointers of the texts that an entry signs one after the other.
fn neighbours(signature: &Signature) -> Vec<(String, String)> {
    let pointer = |part: &Part| match part {
        Part::Text(_) => None,
        part => {
            let written = format!("{part:?}");
            let start = written.find("\"/")? + 1;
            Some(written[start..].split('"').next()?.to_owned())
        }
    };
    let pairs = signature.signed.windows(2);
    pairs.filter_map(|pair| Some((pointer(&pair[0])?, pointer(&pair[1])?))).collect()
}

/// The body with the last characters of one value moved in front of the next.
fn moved(body: &[u8], (one, next): &(String, String), count: usize) -> Option<Vec<u8>> {
    let mut json: Value = serde_json::from_slice(body).ok()?;
    let text = |json: &Value, pointer: &str| match json.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    };
    let (first, second) = (text(&json, one)?, text(&json, next)?);
    let whole = format!("{first}{second}");
    let at = (first.len() + count).checked_sub(4)?;
    if at == first.len() || at > whole.len() {
        return None;
    }
    for (pointer, text) in [(one, &whole[..at]), (next, &whole[at..])] {
        // As a number where it is one: that is what a thief would want.
        let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
        *json.pointer_mut(pointer)? = number.map_or_else(|| text.into(), Value::from);
    }
    Some(json.to_string().into_bytes())
}

#[test]
fn no_character_moves_between_signed_values() {
    let mut wrong = Vec::new();
    let mut tried = BTreeMap::new();
    for case in &played() {
        let Some(signature) = case.scheme.signature() else { continue };
        let genuine = signed(case);
        for pair in neighbours(signature) {
            for count in 0..=8 {
                let Some(body) = moved(&genuine.body, &pair, count) else { continue };
                *tried.entry(case.name.to_string()).or_insert(0) += 1;
                let forged = Draft { body, ..genuine.clone() };
                if !is_known(case, &case.checks, &genuine, &forged) {
                    wrong.push(format!("{}: between {pair:?}", case.name));
                }
                // An amount is worth the most, and its neighbour is no amount.
                let is_amount = pair.0.contains("amount");
                if is_amount && verify(case, &case.checks, &forged.request(), now()).is_ok() {
                    wrong.push(format!("{}: another amount verifies, {pair:?}", case.name));
                }
            }
        }
    }
    assert!(tried.contains_key("paymob"), "{tried:?}");
    none(&wrong);
}

/// What is not signed can be rewritten. Whatever it says then, it is known by what is signed.
#[test]
fn what_is_not_signed_makes_no_other_event() {
    let mut wrong = Vec::new();
    let partly = |case: &&Case| {
        let is_credential = matches!(case.scheme, Scheme::Token(_) | Scheme::Jws(_));
        !case.scheme.covers_body() && !is_credential && !is_each(case)
    };
    for case in played().iter().filter(partly) {
        let genuine = signed(case);
        let known = marks(case, &case.checks, &genuine).unwrap();
        let text = String::from_utf8(genuine.body.clone()).unwrap();
        let forged = [
            format!("{text}&invented=1"),
            format!("invented=1&{text}"),
            text.replacen('{', r#"{"invented":1,"#, 1),
            text.replacen('{', "{ ", 1),
        ];
        for body in forged {
            let forged = Draft { body: body.into_bytes(), ..genuine.clone() };
            for forged in retyped(&forged) {
                let Some(found) = marks(case, &case.checks, &forged) else { continue };
                let is_old = |mark: &Mark| {
                    known.iter().any(|known| {
                        let is_twin = mark.guard.is_some() && known.guard == mark.guard;
                        is_twin || (&known.id, known.content) == (&mark.id, mark.content)
                    })
                };
                if !found.iter().all(is_old) {
                    wrong.push(format!("{}: unsigned content is news", case.name));
                }
            }
        }
    }
    none(&wrong);
}

/// Plain hashes are for providers that offer nothing else.
#[test]
fn plain_hashes_are_written_in_hex() {
    for provider in catalogue::ALL.iter().copied() {
        for signature in lengthened(provider) {
            assert_eq!(signature.encoding, Encoding::Hex, "{}", provider.name);
        }
    }
}
