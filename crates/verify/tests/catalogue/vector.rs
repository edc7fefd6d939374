//! Signed requests and handshakes, read from files. Those of `vectors/recorded.json` come from
//! official SDKs and documentation; those of `vectors/computed/` were computed from the documented
//! schemes by other code than ours. `origin` says which.

use std::collections::BTreeMap;
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
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) provider: String,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) secret: Value,
    #[serde(default)]
    pub(crate) extra: Option<BTreeMap<String, Value>>,
    pub(crate) method: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) body_encoding: String,
    pub(crate) now: i64,
    pub(crate) expect: String,
    pub(crate) reason: Option<String>,
    pub(crate) expect_response: Option<ExpectedReply>,
}

#[derive(Deserialize)]
pub(crate) struct ExpectedReply {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    pub(crate) json: Option<Value>,
}

pub(crate) fn vectors() -> Vec<Vector> {
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
    pub(crate) fn provider(&self) -> Option<&'static Provider> {
        catalogue::find(&self.provider)
    }

    pub(crate) fn secrets(&self) -> Vec<Secret> {
        match &self.secret {
            Value::String(secret) => vec![Secret::new(secret.clone())],
            Value::Array(secrets) => {
                secrets.iter().map(|secret| Secret::new(secret.as_str().unwrap())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Secrets of the same form that are not the right ones: one character in the middle
    /// is another.
    pub(crate) fn other_secrets(&self) -> Vec<Secret> {
        let alter = |secret: &str| {
            let mut bytes = secret.as_bytes().to_vec();
            let place = bytes.len() / 2;
            bytes[place] = if bytes[place] == b'a' { b'b' } else { b'a' };
            Secret::new(String::from_utf8(bytes).unwrap())
        };
        match &self.secret {
            Value::String(secret) => vec![alter(secret)],
            Value::Array(all) => all.iter().map(|secret| alter(secret.as_str().unwrap())).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let extra = self.extra.iter().flatten();
        extra.map(|(key, value)| (key.clone(), text(value))).collect()
    }

    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        match self.body_encoding.as_str() {
            "base64" => STANDARD.decode(&self.body).unwrap(),
            _ => self.body.clone().into_bytes(),
        }
    }

    /// What the vector gets from us: `valid`, or what was wrong.
    pub(crate) fn verdict(&self) -> String {
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

    pub(crate) fn keyring(&self, provider: &Provider) -> Result<Keyring, String> {
        Keyring::with_settings(provider, self.secrets(), self.settings())
            .map_err(|bad| format!("bad secret: {bad}"))
    }

    /// For a question, which may need neither a secret nor what others need beside it.
    pub(crate) fn asked_keyring(&self, provider: &Provider) -> Result<Keyring, String> {
        let mut secrets = self.secrets();
        if secrets.is_empty() {
            secrets.push(Secret::new("not needed here"));
        }
        let mut settings = self.settings();
        for setting in provider.settings.iter().filter(|setting| setting.needed) {
            settings.entry(setting.key.to_string()).or_insert_with(|| "not needed here".to_owned());
        }
        Keyring::with_settings(provider, secrets, settings)
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
        let keyring = match self.asked_keyring(provider) {
            Ok(keyring) => keyring,
            Err(bad) => return bad,
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
