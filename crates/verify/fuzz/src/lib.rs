//! Genuine requests, changed at random: nothing panics, nothing changed is accepted, and what is
//! accepted is known for what it was.
//!
//! The input says which vector is taken and how it is changed, one edit after another. The
//! changes go where hostile requests differ from genuine ones: bytes of the body, of the URL and
//! of header values, headers that are dropped, doubled or swapped, and values that are spliced in
//! from the input.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{
    Draft, Found, Guard, Keyring, Place, Provider, Request, Scheme, Secret, Trust, Verified,
    catalogue, content_digest, events, explain, guard_digest, handshake, pairing_secret, verify,
};
use serde::Deserialize;
use serde_json::Value;

/// Schemes that share their code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Keyed and plain hashes.
    Signature,
    /// Signatures made with a private key.
    Asymmetric,
    /// JSON Web Signatures.
    Jws,
    /// Credentials.
    Token,
    /// Schemes with code of their own.
    Special,
}

impl Family {
    fn of(scheme: &Scheme) -> Option<Family> {
        Some(match scheme {
            Scheme::Signature(signature) if signature.algorithm.is_asymmetric() => {
                Family::Asymmetric
            }
            Scheme::Signature(_) => Family::Signature,
            Scheme::Token(_) => Family::Token,
            Scheme::Jws(_) => Family::Jws,
            Scheme::Special(_) => Family::Special,
            _ => return None,
        })
    }
}

#[derive(Deserialize)]
struct Vector {
    kind: String,
    provider: String,
    #[serde(default)]
    secret: Value,
    #[serde(default)]
    extra: Option<BTreeMap<String, Value>>,
    method: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    body: String,
    body_encoding: String,
    now: i64,
    expect: String,
}

/// A vector that verifies.
struct Genuine {
    provider: &'static Provider,
    scheme: &'static Scheme,
    keyring: Keyring,
    draft: Draft,
    now: Timestamp,
    /// The identities that it has under a signature.
    ids: Vec<String>,
    /// What its other events are guarded by.
    guards: Vec<[u8; 32]>,
    /// What looks like signatures in the headers of each scheme.
    proofs: Vec<Vec<String>>,
}

static GENUINE: LazyLock<BTreeMap<Family, Vec<Genuine>>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors");
    let mut files = vec![format!("{folder}/recorded.json")];
    let computed = std::fs::read_dir(format!("{folder}/computed")).unwrap();
    files.extend(computed.map(|file| file.unwrap().path().display().to_string()));
    files.sort();
    let read = |file: &String| {
        let text = std::fs::read_to_string(file).unwrap();
        serde_json::from_str::<Vec<Vector>>(&text).unwrap()
    };
    let mut families: BTreeMap<Family, Vec<Genuine>> = BTreeMap::new();
    for genuine in files.iter().flat_map(read).filter_map(genuine) {
        if let Some(family) = Family::of(genuine.scheme) {
            families.entry(family).or_default().push(genuine);
        }
    }
    families
});

fn genuine(vector: Vector) -> Option<Genuine> {
    if vector.kind != "signature" || vector.expect != "valid" {
        return None;
    }
    let provider = catalogue::find(&vector.provider)?;
    let secrets = match &vector.secret {
        Value::String(secret) => vec![Secret::new(secret.clone())],
        Value::Array(all) => all.iter().map(|one| Secret::new(one.as_str().unwrap())).collect(),
        _ => Vec::new(),
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let extra = vector.extra.unwrap_or_default();
    let settings = extra.iter().map(|(key, value)| (key.clone(), text(value))).collect();
    let keyring = Keyring::with_settings(provider, secrets, settings).ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in &vector.headers {
        headers.append(name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?);
    }
    let body = match vector.body_encoding.as_str() {
        "base64" => STANDARD.decode(&vector.body).ok()?,
        _ => vector.body.into_bytes(),
    };
    let draft = Draft {
        method: vector.method.unwrap_or_else(|| "POST".to_owned()),
        url: vector.url.unwrap_or_else(|| "/".to_owned()),
        headers,
        body,
    };
    let now = Timestamp::from_second(vector.now).ok()?;
    let name = verify(provider, &keyring, &draft.request(), now).ok()?.scheme;
    let scheme = provider.schemes.iter().find(|scheme| scheme.name() == name)?;
    let request = draft.request();
    let found = events(provider, &request).unwrap_or_default();
    let ids = found.iter().filter(|found| found.event.trust == Trust::Signed);
    let ids = ids.map(|found| found.event.id.to_string()).collect();
    let guards = found.iter().filter_map(|found| found.guard(provider, &request)).collect();
    let schemes = provider.schemes.iter();
    let proofs = schemes.map(|scheme| signatures_in(&proofs(scheme, &request))).collect();
    Some(Genuine { provider, scheme, keyring, draft, now, ids, guards, proofs })
}

/// Runs one input.
pub fn run(family: Family, data: &[u8]) {
    let mut input = Input(data);
    let chosen = usize::from(input.number());
    let known = &GENUINE[&family];
    let genuine = &known[chosen % known.len()];
    let mut draft = genuine.draft.clone();
    while !input.0.is_empty() {
        edit(&mut draft, &mut input);
    }
    // It tries a hundred ways out, so only one input in a few hundred pays for it. The choice is
    // the input's own, or a finding could not be found again.
    let explains = data.iter().fold(7_u8, |sum, byte| sum.rotate_left(3) ^ byte) == 0;
    check(genuine, &draft, explains);
}

fn check(genuine: &Genuine, draft: &Draft, explains: bool) {
    let Genuine { provider, keyring, now, .. } = genuine;
    let request = draft.request();
    let verified = verify(provider, keyring, &request, *now);
    let found = events(provider, &request).unwrap_or_default();
    let _ = content_digest(provider, &request);
    let _ = guard_digest(provider, &request);
    match &verified {
        Ok(verified) => check_accepted(genuine, &request, verified, &found),
        Err(_) if explains => drop(explain(provider, keyring, &request, *now)),
        Err(_) => {}
    }
    let _ = pairing_secret(provider, &request);
    for signed in [false, true] {
        if let Some(reply) = handshake(provider, keyring, &request, signed) {
            assert!(reply.body.len() <= 4096, "{}: a long answer", provider.name);
        }
    }
}

/// No secret is in the input, so whatever is accepted was signed in the genuine request.
fn check_accepted(
    genuine: &Genuine,
    request: &Request<'_>,
    verified: &Verified,
    found: &[Found<'_>],
) {
    let Genuine { provider, draft, ids, guards, .. } = genuine;
    let name = &provider.name;
    let schemes = provider.schemes.iter().zip(&genuine.proofs);
    let decided = || schemes.clone().filter(|(scheme, _)| scheme.name() == verified.scheme);
    let covers_body = decided().all(|(scheme, _)| scheme.covers_body());
    let same_body = request.body == draft.body;
    assert!(same_body || !covers_body, "{name}: a changed body was accepted");

    let carries = |(scheme, were): (&Scheme, &Vec<String>)| {
        let now = proofs(scheme, request);
        were.iter().any(|run| now.contains(run.as_str()))
    };
    // eBay's is inside base64, beside a name that nothing signs.
    let in_headers = *name != "ebay" && decided().all(|(scheme, _)| scheme.header().is_some());
    assert!(!in_headers || decided().any(carries), "{name}: another signature was accepted");

    let signs_all = covers_body || provider.guard == Guard::Signed;
    for one in found {
        let was_signed = || ids.iter().any(|id| *id == one.event.id);
        let is_signed = one.event.trust == Trust::Signed;
        assert!(!is_signed || was_signed(), "{name}: `{}` was never signed", one.event.id);
        let guard = one.guard(provider, request);
        let is_known = guard.is_none_or(|guard| guards.contains(&guard));
        assert!(!signs_all || is_known, "{name}: another guard");
    }
}

/// The values of the headers that a scheme reads its proof from, in one spelling for all the ways
/// to write the same bytes: hex of either case, both alphabets of base64. That makes the check a
/// little blinder, and never wrong.
fn proofs(scheme: &Scheme, request: &Request<'_>) -> String {
    let names: Vec<&str> = match scheme.signature().map(|signature| &signature.place) {
        Some(Place::AnyOf(names)) => names.iter().map(AsRef::as_ref).collect(),
        _ => scheme.header().into_iter().collect(),
    };
    let mut text = String::new();
    for value in names.iter().flat_map(|name| request.headers.get_all(*name)) {
        text.push_str(&String::from_utf8_lossy(value.as_bytes()));
        text.push(' ');
    }
    text.make_ascii_lowercase();
    text.replace('-', "+").replace('_', "/")
}

/// What looks like signatures or tokens: the long runs, or else the longest. Padding does not
/// count.
fn signatures_in(text: &str) -> Vec<String> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "+/".contains(c);
    let runs = || text.split(|c| !inside(c)).filter(|run| !run.is_empty());
    let long: Vec<String> = runs().filter(|run| run.len() >= 20).map(str::to_owned).collect();
    match long.is_empty() {
        true => runs().max_by_key(|run| run.len()).map(str::to_owned).into_iter().collect(),
        false => long,
    }
}

/// The bytes that decide.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn number(&mut self) -> u16 {
        let (taken, rest) = self.0.split_at(self.0.len().min(2));
        self.0 = rest;
        taken.iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte))
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.number() % 64).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }
}

fn edit(draft: &mut Draft, input: &mut Input<'_>) {
    match input.number() % 9 {
        0 => flip(&mut draft.body, input),
        1 => splice(&mut draft.body, input),
        2 => {
            let mut url = std::mem::take(&mut draft.url).into_bytes();
            splice(&mut url, input);
            draft.url = String::from_utf8_lossy(&url).into_owned();
        }
        3..=5 => {
            let Some(name) = nth_header(draft, input) else { return };
            let mut value = draft.headers[&name].as_bytes().to_vec();
            match input.number() % 2 {
                0 => flip(&mut value, input),
                _ => splice(&mut value, input),
            }
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                draft.headers.insert(name, value);
            }
        }
        6 => {
            if let Some(name) = nth_header(draft, input) {
                draft.headers.remove(name);
            }
        }
        7 => {
            let Some(name) = nth_header(draft, input) else { return };
            if let Ok(value) = HeaderValue::from_bytes(input.bytes()) {
                draft.headers.append(name, value);
            }
        }
        _ => {
            let methods = ["GET", "POST", "HEAD", "OPTIONS", "PUT"];
            draft.method = methods[usize::from(input.number()) % methods.len()].to_owned();
        }
    }
}

fn nth_header(draft: &Draft, input: &mut Input<'_>) -> Option<HeaderName> {
    let count = draft.headers.keys_len().max(1);
    draft.headers.keys().nth(usize::from(input.number()) % count).cloned()
}

fn flip(bytes: &mut [u8], input: &mut Input<'_>) {
    let (place, bit) = (usize::from(input.number()), input.number() % 8);
    let length = bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(place % length) {
        *byte ^= 1 << bit;
    }
}

/// Puts bytes of the input in the place of others.
fn splice(bytes: &mut Vec<u8>, input: &mut Input<'_>) {
    let start = usize::from(input.number()) % (bytes.len() + 1);
    let end = (start + usize::from(input.number() % 64)).min(bytes.len());
    bytes.splice(start..end, input.bytes().iter().copied());
}
