//! Answers to challenges are made with the secret that signs events. None may pass for the
//! signature of an event.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{
    Draft, Field, Handshake, Identity, Keyring, Part, Piece, Place, Provider, Request, Said,
    Scheme, Secret, Wants, catalogue, events, handshake, verify,
};
use serde_json::{Map, Value, json};

const TIME: &str = "1760000000";

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn keyring(provider: &Provider) -> Keyring {
    let settings = provider.settings.iter();
    let settings = settings.map(|setting| (setting.key.to_string(), "setting".to_owned()));
    let secrets = vec![Secret::new("client-secret")];
    Keyring::with_settings(provider, secrets, settings.collect()).unwrap()
}

/// Whether the answer holds something that was made with the secret.
fn is_made(handshake: &Handshake) -> bool {
    let made = |piece: &Piece| matches!(piece, Piece::Mac(..) | Piece::BraintreeMac);
    let says = match &handshake.says {
        Said::Text(pieces) => pieces.iter().any(made),
        Said::Json(members) => members.iter().any(|(_, pieces)| pieces.iter().any(made)),
        _ => false,
    };
    says || handshake.headers.iter().any(|(_, piece)| made(piece))
}

/// The entries that hash what they are asked, with that question.
fn oracles() -> Vec<(&'static Provider, &'static Handshake)> {
    let all = catalogue::ALL.iter();
    let asked = all.flat_map(|provider| provider.handshakes.iter().map(move |h| (*provider, h)));
    asked.filter(|(_, handshake)| is_made(handshake)).collect()
}

/// The question with this challenge.
fn question(handshake: &Handshake, challenge: &str) -> Draft {
    let (mut url, mut body) = ("/in/oracle".to_owned(), Value::Object(Map::new()));
    let mut set = |field: &Field, text: &str| match field {
        Field::Query(name) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            url = format!("/in/oracle?{}", query.append_pair(name, text).finish());
        }
        Field::Json(pointer) => {
            let mut at = &mut body;
            for key in pointer.split('/').skip(1) {
                if !at.is_object() {
                    *at = json!({});
                }
                at = &mut at[key];
            }
            *at = text.into();
        }
        field => panic!("no question asks with {field:?}"),
    };
    if let Wants::Is(field, text) = &handshake.wants {
        set(field, text);
    }
    set(handshake.challenge.as_ref().unwrap(), challenge);
    let method = handshake.methods[0].to_string();
    let body = if method == "GET" { Vec::new() } else { body.to_string().into_bytes() };
    Draft { method, url, headers: HeaderMap::new(), body }
}

/// Every text in an answer.
fn told(provider: &Provider, keyring: &Keyring, asked: &Draft) -> Vec<String> {
    let replies =
        [false, true].map(|signed| handshake(provider, keyring, &asked.request(), signed));
    let mut told = Vec::new();
    for reply in replies.into_iter().flatten() {
        match serde_json::from_str::<Map<String, Value>>(&reply.body) {
            Ok(members) => {
                told.extend(members.values().filter_map(Value::as_str).map(str::to_owned));
            }
            Err(_) => told.push(reply.body),
        }
        told.extend(reply.headers.into_iter().map(|(_, value)| value));
    }
    told
}

/// What somebody who wants a signature would ask: bodies that might be events, alone and behind
/// what the entry signs with them.
fn wishes(provider: &Provider) -> BTreeSet<String> {
    let mut bodies: Vec<String> =
        ["0", "1", "-1", "1e5", "null", "true", "a", "abc=", "a=b", "."].map(str::to_owned).into();
    bodies.extend(["[]", "{}", "[1]", "\"a\"", "<a/>", "{\"a\":1}"].map(str::to_owned));
    bodies.extend(["0a".repeat(10), "CDef".repeat(6), "7a".repeat(16), "PGEv".repeat(6)]);
    for field in fields(provider) {
        if let Field::Form(name) | Field::Json(name) | Field::Item(name) = field {
            bodies.push(format!("{}=1", name.trim_start_matches('/')));
            bodies.push(format!("{{\"{}\":1}}", name.trim_start_matches('/')));
        }
    }
    let mut wishes: BTreeSet<String> = bodies.iter().cloned().collect();
    for signature in provider.schemes.iter().filter_map(Scheme::signature) {
        let around = |body: &str| -> String {
            let part = |part: &Part| match part {
                Part::Text(text) => text.to_string(),
                Part::Timestamp => TIME.to_owned(),
                Part::Body => body.to_owned(),
                _ => String::new(),
            };
            signature.signed.iter().map(part).collect()
        };
        wishes.extend(bodies.iter().map(|body| around(body)));
    }
    for between in ["", ".", ":", "|", "-", "_", "/", "+", ","] {
        wishes.extend(bodies.iter().map(|body| format!("{TIME}{between}{body}")));
    }
    wishes
}

/// The fields that name an event of the entry.
fn fields(provider: &Provider) -> Vec<&Field> {
    let mut fields: Vec<&Field> = provider.event_type.iter().map(|rule| &rule.first).collect();
    for identity in provider.identity.iter() {
        match identity {
            Identity::Field(field) => fields.push(field),
            Identity::Joined(all) | Identity::JoinedDigest(all) => fields.extend(all.iter()),
            _ => {}
        }
    }
    fields
}

/// Requests that carry what was told as their signature, over any part of what was asked.
fn forgeries(provider: &Provider, asked: &str, told: &str) -> Vec<Draft> {
    let mut headers = HeaderMap::new();
    let mut set = |name: &str, value: &str| {
        let name: HeaderName = name.parse().unwrap();
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    for field in fields(provider) {
        if let Field::Header(name) = field {
            set(name, "1");
        }
    }
    for scheme in provider.schemes.iter() {
        let Some(name) = scheme.header() else { continue };
        let prefix = scheme.signature().map_or("", |signature| &signature.prefix);
        set(name, &format!("{prefix}{}", told.strip_prefix(prefix).unwrap_or(told)));
        let stamp = scheme.signature().and_then(|signature| signature.timestamp.as_ref());
        if let Some(Place::Header(name)) = stamp.map(|stamp| &stamp.place) {
            set(name, TIME);
        }
    }
    let ends = (0..=asked.len()).filter(|at| asked.is_char_boundary(*at));
    let mut bodies: Vec<String> =
        ends.flat_map(|at| [asked[..at].to_owned(), asked[at..].to_owned()]).collect();
    let pairs = [("bt_signature", told), ("bt_payload", asked)];
    bodies.push(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish());
    let draft = |body: String| Draft {
        method: "POST".to_owned(),
        url: "/in/oracle".to_owned(),
        headers: headers.clone(),
        body: body.into_bytes(),
    };
    bodies.into_iter().map(draft).collect()
}

#[test]
fn no_answer_signs_an_event() {
    let mut names = BTreeSet::new();
    let mut answered = 0;
    let mut verified = BTreeSet::new();
    for (provider, handshake) in oracles() {
        names.insert(provider.name.as_ref());
        let keyring = keyring(provider);
        for wish in wishes(provider) {
            for told in told(provider, &keyring, &question(handshake, &wish)) {
                answered += 1;
                for forged in forgeries(provider, &wish, &told) {
                    let request = forged.request();
                    if verify(provider, &keyring, &request, now()).is_err() {
                        continue;
                    }
                    verified.insert(provider.name.as_ref());
                    let found = events(provider, &request);
                    let is_event = found.is_ok_and(|found| !found.is_empty());
                    assert!(!is_event, "{}: {wish} passes for an event", provider.name);
                }
            }
        }
    }
    assert!(names.is_superset(&["braintree", "linkedin", "smartcar", "x", "zoom"].into()));
    // The answers of these are signatures of something, if not of events.
    assert!(verified.is_superset(&["braintree", "smartcar", "x"].into()), "{verified:?}");
    assert!(answered > 100, "{answered}");
}

/// What providers really ask is answered; what could be a piece of an event is not.
#[test]
fn only_plain_text_is_hashed() {
    for (provider, handshake) in oracles().iter().filter(|(p, _)| p.name != "braintree") {
        let keyring = keyring(provider);
        let is_answered =
            |challenge: &str| !told(provider, &keyring, &question(handshake, challenge)).is_empty();
        for challenge in [
            "890e4665-4dfe-4ab1-b689-ed553bceeed0",
            "qgg8vlvZRS6UYooatFL8Aw",
            "challenge_string",
            "MGZiZTc0ZmQtZWIx+/Q==",
        ] {
            assert!(is_answered(challenge), "{}: {challenge}", provider.name);
        }
        for challenge in [
            "",
            "=",
            "===",
            "a===",
            "hmacsha256=1",
            "a=b",
            "a b",
            "v0:1760000000:1",
            "1760000000.1",
            "{}",
            "[1]",
            "\"a\"",
            "<a/>",
            "a&b",
            "a%b",
            "ä",
            &"a".repeat(129),
        ] {
            assert!(!is_answered(challenge), "{}: {challenge}", provider.name);
        }
    }
}

/// eBay signs with a key pair, so its answer, a plain hash, is no signature of anything. Nobody
/// learns the token from it either.
#[test]
fn an_answer_to_ebay_tells_no_token() {
    let ebay = catalogue::find("ebay").unwrap();
    let pair = oncebox_verify::generate_pair(ebay).unwrap();
    let settings =
        [("verification_token".to_owned(), "a-token-of-32-characters-or-more".to_owned())];
    let secrets = vec![Secret::new(pair.public)];
    let keyring = Keyring::with_settings(ebay, secrets, settings.into()).unwrap();
    let headers = HeaderMap::new();
    let url = "/in/ebay?challenge_code=abc";
    let asked = Request { method: "GET", url, headers: &headers, body: b"" };
    let reply = handshake(ebay, &keyring, &asked, false).unwrap();
    assert!(!reply.body.contains("a-token"), "{}", reply.body);
}
