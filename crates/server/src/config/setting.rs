//! What a source says beside its secrets: the keys that the entry of its provider names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use oncebox_verify::{JwsAlgorithm, KeyForm, Provider, Scheme, catalogue};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::Environment;
use super::reader::Section;
use super::secret::{file, is_telling, variable};

/// What every provider takes whose signatures are checked with a public key: a key that the
/// operator has is neither fetched nor asked for its chain.
const PINNED: [(&str, &str); 3] = [
    ("public_key", "The public key of the provider, instead of one that is fetched."),
    ("jwk", "The same as a JSON Web Key, or a whole key set."),
    ("certificates", "Certificates that are not fetched: a JSON object from URL to PEM."),
];

/// What every provider takes whose key set is fetched.
const JWKS_URL: (&str, &str) =
    ("jwks_url", "Where the key set is, where that is not the provider's usual place.");

/// What every provider takes that offers proofs of several strengths.
const SCHEME: (&str, &str) = (
    "scheme",
    "Which proof counts, where the provider offers several; `oncebox providers NAME` lists them.",
);

/// What a setting must be.
const TEXT: &str = "env:NAME, file:PATH or text in quotes";

/// The value of a setting, or where it is. Printing it shows the place, and `***` for a value in
/// the file that may be a secret.
#[derive(Clone)]
pub struct SettingRef {
    written: String,
    is_hidden: bool,
}

impl SettingRef {
    /// Reads what the configuration says under a key.
    pub fn parse(key: &str, text: &str) -> Self {
        let is_public = PINNED.iter().any(|(pinned, _)| *pinned == key);
        Self { written: text.to_owned(), is_hidden: is_telling(key) && !is_public }
    }

    /// Fetches the value. The error is a sentence for the operator and a hint.
    pub fn resolve(&self, environment: &Environment) -> Result<String, (String, String)> {
        let text = if let Some(name) = self.written.strip_prefix("env:") {
            variable(name, environment)?
        } else if let Some(path) = self.written.strip_prefix("file:") {
            file(path, environment)?
        } else {
            self.written.clone()
        };
        if text.trim().is_empty() {
            return Err((
                format!("the setting {self} is empty"),
                "remove it, or fill it in".into(),
            ));
        }
        Ok(text)
    }
}

impl fmt::Display for SettingRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_place = self.written.starts_with("env:") || self.written.starts_with("file:");
        f.write_str(if is_place || !self.is_hidden { &self.written } else { "***" })
    }
}

impl fmt::Debug for SettingRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SettingRef({self})")
    }
}

impl Serialize for SettingRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Every key that a source of this provider may say, with what it is.
pub fn keys(provider: &Provider) -> impl Iterator<Item = (&str, &str)> {
    let own = provider.settings.iter();
    let own = own.map(|setting| (setting.key.as_ref(), setting.help.as_ref()));
    let is_own = |key: &str| provider.settings.iter().any(|setting| setting.key == key);
    let pinned: &[(&str, &str)] = if takes_public_keys(provider) { &PINNED } else { &[] };
    let sets = provider.schemes.iter().any(fetches_set).then_some(JWKS_URL);
    let scheme = provider.choice.map(|_| SCHEME);
    let shared = pinned.iter().copied().chain(sets).chain(scheme);
    own.chain(shared.filter(move |(key, _)| !is_own(key)))
}

/// Whether a source that says this needs no secret.
pub(super) fn is_key(key: &str) -> bool {
    PINNED.iter().any(|(pinned, _)| *pinned == key)
}

fn fetches_set(scheme: &Scheme) -> bool {
    matches!(scheme, Scheme::Jws(_)) && scheme.fetches_keys()
}

fn takes_public_keys(provider: &Provider) -> bool {
    provider.schemes.iter().any(|scheme| match scheme {
        Scheme::Signature(signature) => {
            matches!(signature.key, KeyForm::Public | KeyForm::Certificate(_))
        }
        Scheme::Jws(jws) => {
            use JwsAlgorithm::{Hs256, Hs384, Hs512};
            jws.algorithms.iter().any(|algorithm| !matches!(algorithm, Hs256 | Hs384 | Hs512))
        }
        Scheme::Special(_) => scheme.fetches_keys(),
        _ => false,
    })
}

/// Reads the settings of a source and reports those that are missing.
pub(super) fn read(
    section: &mut Section<'_>,
    name: &str,
    provider: &'static Provider,
) -> BTreeMap<String, SettingRef> {
    let mut settings = BTreeMap::new();
    for (key, _) in keys(provider) {
        if let Some(text) = section.get::<String>(key, TEXT) {
            settings.insert(key.to_owned(), SettingRef::parse(key, &text));
        }
    }
    for setting in provider.settings.iter().filter(|setting| setting.needed) {
        if !section.has(&setting.key) {
            let message = format!("source `{name}` has no `{}`", setting.key);
            section.report(&setting.key, message, setting.help.as_ref());
        }
    }
    settings
}

/// Whether some provider of the catalogue takes this key.
pub(super) fn is_known(key: &str) -> bool {
    catalogue::ALL.iter().any(|provider| keys(provider).any(|(known, _)| known == key))
}

/// Adds the settings of every provider to the JSON Schema of a source.
pub(super) fn add_keys(mut schema: serde_json::Value) -> serde_json::Value {
    let mut takers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut helps: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for provider in catalogue::ALL.iter() {
        for (key, help) in keys(provider) {
            takers.entry(key).or_default().insert(&provider.name);
            helps.entry(key).or_default().insert(help);
        }
    }
    let properties = &mut schema["$defs"]["SourceConfig"]["properties"];
    for (key, takers) in takers {
        let takers: Vec<_> = takers.into_iter().collect();
        let only = format!("Only with provider = {}.", takers.join(", "));
        // What means something else with each provider is told by `oncebox providers NAME`.
        let description = match helps[key].iter().collect::<Vec<_>>()[..] {
            [help] => format!("{help} {only}"),
            _ => only,
        };
        properties[key] = json!({ "type": "string", "minLength": 1, "description": description });
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_printed() {
        let shown = |key: &str, text: &str| SettingRef::parse(key, text).to_string();
        assert_eq!(shown("api_key", "canary"), "***");
        assert_eq!(shown("api_key", "env:KEY"), "env:KEY");
        assert_eq!(shown("webhook_id", "8PT5"), "8PT5");
        assert_eq!(shown("public_key", "MCow"), "MCow");
    }

    #[test]
    fn an_empty_setting_is_none() {
        let environment = Environment::from([("EMPTY", " ")]);
        let resolve = |text: &str| SettingRef::parse("audience", text).resolve(&environment);
        assert_eq!(resolve("me").unwrap(), "me");
        assert_eq!(resolve("env:EMPTY").unwrap_err().0, "the setting env:EMPTY is empty");
        assert!(resolve("env:NONE").unwrap_err().0.contains("is not set"));
        assert!(resolve("file:/none/here").unwrap_err().0.contains("cannot be read"));
    }
}
