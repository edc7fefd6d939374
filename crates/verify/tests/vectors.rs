//! Signed requests and handshakes. Those of `vectors/recorded.json` come from official SDKs and
//! documentation; those of `vectors/computed/` were computed from the documented schemes by other
//! code than ours. `origin` says which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{
    Keyring, Provider, Reply, Request, Secret, Settings, catalogue, handshake, paired,
    pairing_secret, verify,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Vector {
    id: String,
    kind: String,
    provider: String,
    title: String,
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
    reason: Option<String>,
    expect_response: Option<ExpectedReply>,
}

#[derive(Deserialize)]
struct ExpectedReply {
    status: u16,
    content_type: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    json: Option<Value>,
}

/// Where our word for the reason is another than the vector's.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("gitlab-03", "wrong_token"),
    // A hex digest where base64 belongs has the wrong length; we say so.
    ("shopify-02", "malformed_signature"),
];

fn vectors() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let computed = fs::read_dir(folder.join("computed")).unwrap().map(|file| file.unwrap().path());
    let files = [folder.join("recorded.json")].into_iter().chain(computed);
    let mut vectors = Vec::new();
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "json")) {
        let text = fs::read_to_string(&file).unwrap();
        let read: Result<Vec<Vector>, _> = serde_json::from_str(&text);
        vectors.extend(read.unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    vectors
}

impl Vector {
    fn provider(&self) -> Option<&'static Provider> {
        catalogue::find(&self.provider)
    }

    fn secrets(&self) -> Vec<Secret> {
        match &self.secret {
            Value::String(secret) => vec![Secret::new(secret.clone())],
            Value::Array(secrets) => {
                secrets.iter().map(|secret| Secret::new(secret.as_str().unwrap())).collect()
            }
            _ => Vec::new(),
        }
    }

    fn settings(&self) -> Settings {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let extra = self.extra.iter().flatten();
        extra.map(|(key, value)| (key.clone(), text(value))).collect()
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn body(&self) -> Vec<u8> {
        match self.body_encoding.as_str() {
            "base64" => STANDARD.decode(&self.body).unwrap(),
            _ => self.body.clone().into_bytes(),
        }
    }

    /// What the vector gets from us: `valid`, or what was wrong.
    fn verdict(&self) -> String {
        let Some(provider) = self.provider() else { return "no such provider".to_owned() };
        let (headers, body) = (self.headers(), self.body());
        let request = Request {
            method: self.method.as_deref().unwrap_or("POST"),
            url: self.url.as_deref().unwrap_or("/"),
            headers: &headers,
            body: &body,
        };
        let now = Timestamp::from_second(self.now).unwrap();
        match self.kind.as_str() {
            "challenge" => self.answered(provider, &request, now),
            _ => self.verified(provider, &request, now),
        }
    }

    fn keyring(&self, provider: &Provider) -> Result<Keyring, String> {
        Keyring::with_settings(provider, self.secrets(), self.settings())
            .map_err(|bad| format!("bad secret: {bad}"))
    }

    fn verified(&self, provider: &Provider, request: &Request<'_>, now: Timestamp) -> String {
        let keyring = match self.keyring(provider) {
            Ok(keyring) => keyring,
            Err(bad) => return bad,
        };
        match verify(provider, &keyring, request, now) {
            Err(rejection) => rejection.code().to_owned(),
            Ok(_) => "valid".to_owned(),
        }
    }

    fn answered(&self, provider: &Provider, request: &Request<'_>, now: Timestamp) -> String {
        let expected = self.expect_response.as_ref().expect("a challenge has a response");
        if let Some(secret) = pairing_secret(provider, request) {
            return expected.compare(&paired(provider, &secret));
        }
        let mut secrets = self.secrets();
        if secrets.is_empty() {
            secrets.push(Secret::new("not needed here"));
        }
        let mut settings = self.settings();
        for setting in provider.settings.iter().filter(|setting| setting.needed) {
            settings.entry(setting.key.to_string()).or_insert_with(|| "not needed here".to_owned());
        }
        let keyring = match Keyring::with_settings(provider, secrets, settings) {
            Ok(keyring) => keyring,
            Err(bad) => return format!("bad secret: {bad}"),
        };
        let reply = handshake(provider, &keyring, request, false).or_else(|| {
            verify(provider, &keyring, request, now).ok()?;
            handshake(provider, &keyring, request, true)
        });
        reply.map_or("no answer".to_owned(), |reply| expected.compare(&reply))
    }
}

impl ExpectedReply {
    fn compare(&self, reply: &Reply) -> String {
        let has = |(name, value): &(String, String)| {
            let same = |(n, v): &(String, String)| n.eq_ignore_ascii_case(name) && v == value;
            reply.headers.iter().any(same)
        };
        let holds = self.status == reply.status
            && self.content_type.as_ref().is_none_or(|kind| kind == reply.content_type)
            && self.headers.iter().all(has)
            && self.body.as_ref().is_none_or(|body| *body == reply.body)
            && self.json.as_ref().is_none_or(|json| {
                serde_json::from_str::<Value>(&reply.body).is_ok_and(|body| body == *json)
            });
        if holds { "valid".to_owned() } else { format!("{reply:?}") }
    }
}

#[test]
fn every_vector_behaves_as_it_says() {
    let mut failures = Vec::new();
    let vectors = vectors();
    let count = vectors.len();
    for vector in vectors {
        let other_word = OTHER_WORDS.iter().find(|(id, _)| *id == vector.id).map(|(_, code)| *code);
        let expected = match vector.expect.as_str() {
            "valid" => "valid",
            _ => other_word.or(vector.reason.as_deref()).expect("an invalid vector has a reason"),
        };
        let got = vector.verdict();
        println!("{} {}: {got}", vector.id, vector.title);
        if got != expected {
            let Vector { id, title, .. } = vector;
            failures.push(format!("{id} ({title}): expected {expected}, got {got}"));
        }
    }
    assert!(count >= 236, "vectors are missing: {count}");
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_entry_has_a_vector() {
    let vectors = vectors();
    let covered: BTreeSet<&str> = vectors
        .iter()
        .filter(|vector| vector.kind == "signature" && vector.expect == "valid")
        .map(|vector| vector.provider.as_str())
        .collect();
    // The generic ones are made of settings; their defaults are those of generic-ts-body and the
    // tokens of others.
    let generic = ["hmac", "token"];
    let bare: Vec<&str> = catalogue::ALL
        .iter()
        .map(|provider| provider.name.as_ref())
        .filter(|name| !covered.contains(name) && !generic.contains(name))
        .collect();
    assert!(bare.is_empty(), "without a vector: {}", bare.join(", "));
}

#[test]
fn ids_of_vectors_are_unique() {
    let mut seen = BTreeSet::new();
    for vector in vectors() {
        assert!(seen.insert(vector.id.clone()), "{} is there twice", vector.id);
    }
}
