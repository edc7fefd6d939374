//! Secrets as the configuration writes them: where they are, not what they are.

use std::borrow::Cow;
use std::fmt;

use oncebox_verify::{Provider, Secret};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use super::Environment;

/// The shortest secret `serve` accepts. Shorter ones are guessed, not stolen.
pub const SECRET_BYTES_MIN: usize = 8;

/// Where a secret is. Printing it shows the place, and `***` for one written in the file.
#[derive(Clone)]
pub enum SecretRef {
    /// `env:NAME`: an environment variable.
    Variable(String),
    /// `file:PATH`: a file; one trailing line break is not part of the secret.
    File(String),
    /// The secret itself.
    Literal(Secret),
}

impl SecretRef {
    /// Reads what the configuration says.
    pub fn parse(text: &str) -> Self {
        if let Some(name) = text.strip_prefix("env:") {
            Self::Variable(name.to_owned())
        } else if let Some(path) = text.strip_prefix("file:") {
            Self::File(path.to_owned())
        } else {
            Self::Literal(Secret::new(text))
        }
    }

    /// Fetches the secret. The error is a sentence for the operator and a hint.
    pub fn resolve(&self, environment: &Environment) -> Result<Secret, (String, String)> {
        let secret = match self {
            Self::Variable(name) => Secret::new(variable(name, environment)?),
            Self::File(path) => Secret::new(file(path, environment)?),
            Self::Literal(secret) => secret.clone(),
        };
        if secret.is_empty() {
            let hint = "an empty secret would let anyone sign";
            return Err((format!("the secret {self} is empty"), hint.into()));
        }
        Ok(secret)
    }
}

/// What looks wrong about a secret of a provider, though it can be used as it is: a sentence and a
/// hint.
pub(super) fn doubtful(provider: &Provider, secret: &Secret) -> Option<(&'static str, String)> {
    let text = secret.expose();
    let is_quoted =
        |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if is_quoted('"') || is_quoted('\'') {
        let hint = "the quotes are part of it; remove them where it is set";
        return Some(("is in quotes", hint.to_owned()));
    }
    let (_, whose) = API_KEYS.iter().find(|(prefix, _)| text.starts_with(prefix))?;
    let is_its_own = provider.name.starts_with(&whose.to_lowercase());
    if !is_its_own && may_be_a_key(provider) {
        return None;
    }
    let hint = format!(
        "it begins like a key of {whose}'s API; webhooks are signed with a secret of their own: \
         see `oncebox providers {}`",
        provider.name
    );
    Some(("looks like an API key", hint))
}

/// Whether a provider signs with a key of its API, as its entry says, or with whatever was agreed.
fn may_be_a_key(provider: &Provider) -> bool {
    matches!(&*provider.name, "hmac" | "token")
        || provider.find_secret.to_lowercase().contains("key")
}

/// How keys of APIs begin, and whose they are.
const API_KEYS: [(&str, &str); 10] = [
    ("sk_", "Stripe"),
    ("rk_", "Stripe"),
    ("pk_", "Stripe"),
    ("xoxb-", "Slack"),
    ("xoxp-", "Slack"),
    ("ghp_", "GitHub"),
    ("github_pat_", "GitHub"),
    ("glpat-", "GitLab"),
    ("shpat_", "Shopify"),
    ("SG.", "SendGrid"),
];

/// What an environment variable says.
pub(super) fn variable(name: &str, environment: &Environment) -> Result<String, (String, String)> {
    environment.get(name).map(str::to_owned).ok_or_else(|| {
        let problem = format!("the environment variable {name} is not set");
        (problem, "set it where the server is started".into())
    })
}

/// What a file says, without its last line break.
pub(super) fn file(path: &str, environment: &Environment) -> Result<String, (String, String)> {
    let path = environment.path(path);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let problem = format!("the secret file {} cannot be read: {error}", path.display());
        (problem, "relative paths start in the folder of the configuration".into())
    })?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// Whether what is called so may be a secret.
pub(super) fn is_telling(name: &str) -> bool {
    let words = ["secret", "password", "token", "key", "bearer", "fetch.headers"];
    words.iter().any(|word| name.contains(word))
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Literal(_) => f.write_str("***"),
        }
    }
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretRef({self})")
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for SecretRef {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "description": "env:NAME, file:PATH, or the secret itself.",
        })
    }
}

/// The address of the store. Its password, if it has one, is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// Takes a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The whole URL, password included.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of the password within the URL.
    pub(super) fn password(url: &str) -> Option<std::ops::Range<usize>> {
        let start = url.find("://")? + 3;
        let at = start + url[start..].rfind('@')?;
        let colon = start + url[start..at].find(':')?;
        Some(colon + 1..at)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        // A password may also be a parameter, as libpq allows.
        if let Some(start) = shown.find("password=").map(|at| at + "password=".len()) {
            let end = shown[start..].find('&').map_or(shown.len(), |length| start + length);
            shown.replace_range(start..end, "***");
        }
        if let Some(password) = Self::password(&shown) {
            shown.replace_range(password, "***");
        }
        f.write_str(&shown)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for StoreUrl {
    fn schema_name() -> Cow<'static, str> {
        "StoreUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(sqlite|postgres|postgresql)://" })
    }
}

#[cfg(test)]
mod tests {
    use oncebox_verify::catalogue;

    use super::*;

    #[test]
    fn nothing_prints_a_secret() {
        let secret = SecretRef::parse("canary-secret");
        assert_eq!(format!("{secret} {secret:?}"), "*** SecretRef(***)");
        let url = StoreUrl::new("postgres://me:canary@h1,h2/db?password=canary&x=y");
        assert_eq!(url.to_string(), "postgres://me:***@h1,h2/db?password=***&x=y");
        assert_eq!(StoreUrl::new("sqlite://a.db").to_string(), "sqlite://a.db");
    }

    #[test]
    fn a_key_of_an_api_is_doubted_where_the_entry_signs_with_no_such_key() {
        let doubts = |provider: &Provider, text: &str| {
            doubtful(provider, &Secret::new(format!("{text}0123456789"))).is_some()
        };
        for provider in catalogue::ALL.iter() {
            let name = &provider.name;
            for (prefix, whose) in API_KEYS {
                let is_told = provider.find_secret.contains(&format!("({prefix}"));
                assert!(!is_told || !doubts(provider, prefix), "{name} is told to take {prefix}");
                if **name == whose.to_lowercase() {
                    assert!(doubts(provider, prefix), "{name} signs with no {prefix}");
                }
            }
            assert!(!doubts(provider, "whsec_"), "{name}");
        }
        let paystack = catalogue::find("paystack").unwrap();
        assert!(!doubts(paystack, "sk_live_"), "it signs with the secret key of its API");
        assert!(doubts(paystack, "\"") || doubtful(paystack, &Secret::new("'a b'")).is_some());
    }
}
