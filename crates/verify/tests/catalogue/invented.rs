//! Captured requests with invented types, ids and every other part that is not signed: none of them
//! passes for a new event.

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{
    Draft, Field, Found, Guard, Identity, Jws, JwsPayload, Keyring, Provider, SampleEvent, Scheme,
    catalogue, events, sample, sign_with, verify,
};
use serde_json::Value;

use crate::keys::Keys;
use crate::negatives::Genuine;

/// A request that verifies, and what verifies it.
struct Captured {
    provider: &'static Provider,
    keyring: Keyring,
    draft: Draft,
    now: Timestamp,
}

impl Captured {
    /// Every vector, and a sample of every guarded entry: not each vector has all that is read.
    fn all() -> Vec<Captured> {
        let vectors = Genuine::all().into_iter().map(|genuine| {
            let Genuine { provider, keyring, draft, now, .. } = genuine;
            Captured { provider, keyring, draft, now }
        });
        let guarded = catalogue::ALL.iter().filter(|provider| provider.guards_twins());
        vectors.chain(guarded.filter_map(|provider| Captured::sample(provider))).collect()
    }

    fn sample(provider: &'static Provider) -> Option<Captured> {
        let (keys, now) = (Keys::of(provider)?, Timestamp::from_second(1_760_000_000).unwrap());
        let event = SampleEvent { id: "1", event_type: "", at: now, object: None };
        let draft = sign_with(provider, &keys.signing(provider), sample(provider, &event), now);
        Some(Captured { provider, keyring: keys.checking(provider), draft: draft.unwrap(), now })
    }

    /// The scheme that believes a request.
    fn scheme_of(&self, draft: &Draft) -> Option<&'static Scheme> {
        let verified = verify(self.provider, &self.keyring, &draft.request(), self.now).ok()?;
        self.provider.schemes.iter().find(|scheme| scheme.name() == verified.scheme)
    }
}

/// One way to change a request: what it is, and the request with it.
type Invention = (String, Box<dyn Fn(&Draft) -> Draft>);

/// Every field that an entry reads.
fn fields(provider: &Provider) -> Vec<&Field> {
    let identity = provider.identity.iter().flat_map(|identity| match identity {
        Identity::Field(field) => std::slice::from_ref(field),
        Identity::Joined(fields) | Identity::JoinedDigest(fields) => fields,
        Identity::Digest | Identity::Each => &[],
    });
    let types = provider
        .event_type
        .iter()
        .flat_map(|rule| std::iter::once(&rule.first).chain(rule.then.as_ref()));
    let versions = provider.version.iter().map(|version| &version.field);
    identity.chain(types).chain(provider.object.iter()).chain(versions).collect()
}

fn with_header(name: &str, value: Option<&'static str>) -> Invention {
    let header: HeaderName = name.parse().unwrap();
    let change = move |draft: &Draft| {
        let mut draft = draft.clone();
        match value {
            Some(value) => drop(draft.headers.insert(&header, HeaderValue::from_static(value))),
            None => drop(draft.headers.remove(&header)),
        }
        draft
    };
    (format!("{name}: {value:?}"), Box::new(change))
}

fn with_query(pair: &str) -> Invention {
    let what = format!("?{pair}");
    let pair = pair.to_owned();
    let change = move |draft: &Draft| {
        let sign = if draft.url.contains('?') { '&' } else { '?' };
        Draft { url: format!("{}{sign}{pair}", draft.url), ..draft.clone() }
    };
    (what, Box::new(change))
}

fn with_body(what: &str, change: impl Fn(&[u8]) -> Option<Vec<u8>> + 'static) -> Invention {
    let change = move |draft: &Draft| match change(&draft.body) {
        Some(body) => Draft { body, ..draft.clone() },
        None => draft.clone(),
    };
    (what.to_owned(), Box::new(change))
}

/// The JSON with another value at a pointer.
fn with_json(pointer: String) -> Invention {
    with_body(&format!("body {pointer}"), move |body| {
        let mut json: Value = serde_json::from_slice(body).ok()?;
        *json.pointer_mut(&pointer)? = "1999".into();
        Some(json.to_string().into_bytes())
    })
}

/// The pairs of a form, changed and written anew.
fn with_form(what: &str, change: impl Fn(&mut Vec<(String, String)>) + 'static) -> Invention {
    with_body(what, move |body| {
        if body.starts_with(b"{") || body.starts_with(b"[") || !body.contains(&b'=') {
            return None;
        }
        let mut pairs: Vec<(String, String)> = form_urlencoded::parse(body).into_owned().collect();
        change(&mut pairs);
        Some(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into())
    })
}

fn header_inventions(captured: &Captured) -> Vec<Invention> {
    let mut names: BTreeSet<String> =
        captured.draft.headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.extend(fields(captured.provider).iter().filter_map(|field| match field {
        Field::Header(name) => Some(name.to_lowercase()),
        _ => None,
    }));
    names.insert("x-invented".to_owned());
    let mut inventions = Vec::new();
    for name in names.iter().filter(|name| *name != "content-type") {
        inventions.extend([with_header(name, Some("invented")), with_header(name, None)]);
    }
    let kinds = ["application/json", "application/x-www-form-urlencoded", "text/plain"];
    inventions.extend(kinds.map(|kind| with_header("content-type", Some(kind))));
    inventions.push(with_header("content-type", None));
    inventions.push(with_query("invented=1"));
    for field in fields(captured.provider) {
        if let Field::Query(name) = field {
            inventions.push(with_query(&format!("{name}=invented")));
        }
    }
    inventions
}

fn body_inventions(provider: &Provider) -> Vec<Invention> {
    let mut inventions = vec![
        with_body("space", |body| Some([b" ", body, b"\n"].concat())),
        with_body("a key more", |body| {
            let rest = body.strip_prefix(b"{")?;
            Some([&b"{\"invented\":1,"[..], rest].concat())
        }),
        with_form("a field more", |pairs| pairs.push(("invented".to_owned(), "1".to_owned()))),
        with_form("another order", |pairs| pairs.reverse()),
        with_form("another spelling", |_| {}),
        with_body("the payload alone", |body| {
            let mut pairs = form_urlencoded::parse(body);
            let payload = pairs.find(|(name, _)| name == "payload")?;
            Some(payload.1.into_owned().into_bytes())
        }),
    ];
    for field in fields(provider) {
        match field {
            Field::Json(pointer) => inventions.push(with_json(pointer.to_string())),
            Field::Item(pointer) => {
                for batch in provider.batches.iter() {
                    inventions.push(with_json(format!("{}/0{pointer}", batch.items)));
                }
                inventions.push(with_json(pointer.to_string()));
            }
            Field::Form(name) => {
                let name = name.to_string();
                inventions.push(with_form(&format!("form {name}"), move |pairs| {
                    for pair in pairs.iter_mut().filter(|pair| pair.0 == name) {
                        pair.1 = "invented".to_owned();
                    }
                }));
            }
            _ => {}
        }
    }
    inventions
}

/// Whether the proof says nothing of the request: then anybody who has it can write any body.
fn covers_nothing(scheme: &Scheme) -> bool {
    match scheme {
        Scheme::Token(_) => true,
        Scheme::Jws(Jws { payload: JwsPayload::Claims(_), .. }) => !scheme.covers_body(),
        _ => false,
    }
}

/// What the store knows an event by.
struct Mark {
    id: String,
    guard: Option<[u8; 32]>,
}

/// The marks of a request that verifies and can be read.
fn marks(captured: &Captured, draft: &Draft) -> Option<Vec<Mark>> {
    captured.scheme_of(draft)?;
    let request = draft.request();
    let found = events(captured.provider, &request).ok()?;
    let mark = |found: &Found<'_>| {
        let guard = found.guard(captured.provider, &request);
        Mark { id: found.event.id.to_string(), guard }
    };
    Some(found.iter().map(mark).collect())
}

/// Whether a copy is refused because of its age, or every request is an event by intent.
fn is_open_by_design(provider: &Provider, scheme: &Scheme) -> bool {
    let Provider { guard, identity, .. } = provider;
    let is_dated = scheme.covers_body() && scheme.signs_timestamp();
    is_dated || *guard == Guard::Nothing || identity.contains(&Identity::Each)
}

#[test]
fn nothing_invented_passes_for_a_new_event() {
    let (mut tried, mut verified) = (0, 0);
    let mut through: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut guarded = BTreeSet::new();
    for captured in Captured::all() {
        let Some(known) = marks(&captured, &captured.draft) else { continue };
        let Some(scheme) = captured.scheme_of(&captured.draft) else { continue };
        if is_open_by_design(captured.provider, scheme) {
            continue;
        }
        if captured.provider.guards_twins() {
            guarded.insert(captured.provider.name.clone());
        }
        let mut inventions = header_inventions(&captured);
        if !covers_nothing(scheme) {
            inventions.extend(body_inventions(captured.provider));
        }
        for (number, (first, change)) in inventions.iter().enumerate() {
            let once = change(&captured.draft);
            if captured.scheme_of(&once).is_none() {
                continue;
            }
            for (second, change) in &inventions[number..] {
                tried += 1;
                let Some(found) = marks(&captured, &change(&once)) else { continue };
                verified += 1;
                let is_known = |mark: &Mark| {
                    let same = |known: &Mark| known.id == mark.id;
                    let twin = |known: &Mark| mark.guard.is_some() && known.guard == mark.guard;
                    known.iter().any(|known| same(known) || twin(known))
                };
                if !found.iter().all(is_known) {
                    let name = captured.provider.name.to_string();
                    through.entry(name).or_default().insert(format!("{first} / {second}"));
                }
            }
        }
    }
    println!("{tried} tried, {verified} verified, {} guarded entries", guarded.len());
    let is_missed = |provider: &&&Provider| {
        let is_generic = ["hmac", "token"].contains(&provider.name.as_ref());
        provider.guards_twins() && !is_generic && !guarded.contains(&provider.name)
    };
    let missed = catalogue::ALL.iter().filter(is_missed).map(|provider| &provider.name);
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0], "guarded entries that were not tried");
    assert!(verified > 10_000, "{verified} of {tried}");
    let told: Vec<String> = through
        .iter()
        .map(|(name, ways)| format!("{name}: {} such as {:?}", ways.len(), ways.first()))
        .collect();
    assert!(told.is_empty(), "unmarked, of {verified}:\n{}", told.join("\n"));
}
