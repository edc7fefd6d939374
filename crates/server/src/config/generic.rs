//! The keys of the generic `hmac` and `token` schemes, which stand beside a source's own.

use std::collections::BTreeMap;

use oncebox_verify::Provider;
use oncebox_verify::custom::{self, HmacSettings, SettingsError, TokenSettings};
use serde_json::json;

use super::reader::Section;
use super::setting::SettingRef;

/// The keys of `provider = "hmac"`.
pub(super) const HMAC_KEYS: [&str; 16] = [
    "signature_header",
    "signature_label",
    "signature_prefix",
    "signature_separator",
    "algorithm",
    "encoding",
    "timestamp_header",
    "timestamp_label",
    "timestamp_format",
    "tolerance",
    "signed",
    "secret_encoding",
    "event_id",
    "event_type",
    "object_id",
    "version",
];

/// The keys of `provider = "token"`.
pub(super) const TOKEN_KEYS: [&str; 6] =
    ["header", "scheme", "event_id", "event_type", "object_id", "version"];

/// The keys a generic provider takes beside a source's own; `None` for those of the catalogue.
pub(super) fn keys(provider: &str) -> Option<&'static [&'static str]> {
    match provider {
        "hmac" => Some(&HMAC_KEYS),
        "token" => Some(&TOKEN_KEYS),
        _ => None,
    }
}

/// Builds a generic provider and reports every key that is wrong.
pub(super) fn read(
    section: &Section<'_>,
    provider: &str,
    scheme: &toml::Table,
) -> Option<Provider> {
    let known = keys(provider)?;
    let mut sound = true;
    for (key, value) in scheme {
        if !known.contains(&key.as_str()) {
            section.report_unknown(key, known);
            sound = false;
        } else if (key == "tolerance") != value.is_integer()
            || !(value.is_integer() || value.is_str())
        {
            let must_be = if key == "tolerance" { "a number of seconds" } else { super::TEXT };
            section.report(key, format!("`{}` must be {must_be}", section.path(key)), "");
            sound = false;
        }
    }
    if !sound {
        return None;
    }
    let entry = match provider {
        "hmac" => settings::<HmacSettings>(scheme).and_then(|settings| settings.provider()),
        _ => settings::<TokenSettings>(scheme).and_then(|settings| settings.provider()),
    };
    match entry {
        Ok(entry) => Some(entry),
        Err(SettingsError { field, message, hint }) => {
            section.report(field, format!("`{}`: {message}", section.path(field)), hint);
            None
        }
    }
}

/// The provider with the fields that a source names, where its entry lets a source do so.
pub(super) fn with_fields(
    section: &Section<'_>,
    entry: &Provider,
    settings: &BTreeMap<String, SettingRef>,
) -> Option<Provider> {
    let said = |key: &str| settings.get(key).map(ToString::to_string);
    match custom::with_fields(entry, said) {
        Ok(entry) => Some(entry),
        Err(SettingsError { field, message, hint }) => {
            section.report(field, format!("`{}`: {message}", section.path(field)), hint);
            None
        }
    }
}

fn settings<T: serde::de::DeserializeOwned>(scheme: &toml::Table) -> Result<T, SettingsError> {
    scheme.clone().try_into().map_err(|_| SettingsError {
        field: "provider",
        message: "the keys of the scheme cannot be read".into(),
        hint: "see oncebox.example.toml".into(),
    })
}

/// Adds the keys of the generic schemes to the JSON Schema of a source.
pub(super) fn add_keys(mut schema: serde_json::Value) -> serde_json::Value {
    let source = &mut schema["$defs"]["SourceConfig"];
    for (provider, keys) in [("hmac", &HMAC_KEYS[..]), ("token", &TOKEN_KEYS)] {
        for key in keys {
            let kind = if *key == "tolerance" { "integer" } else { "string" };
            let entry = &mut source["properties"][key];
            // A key may mean something with providers of the catalogue too.
            let known = entry["description"].as_str();
            let only = match known {
                Some(known) => format!("{known} Also with provider = \"{provider}\"."),
                None => format!("Only with provider = \"{provider}\"."),
            };
            let kind = if known.is_some() { entry["type"].clone() } else { json!(kind) };
            *entry = json!({ "type": kind, "description": only });
        }
    }
    source["additionalProperties"] = json!(false);
    schema
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_keys_are_those_of_the_settings() {
        let text = || Some("x".to_owned());
        let hmac = HmacSettings {
            signature_label: text(),
            signature_separator: text(),
            timestamp_header: text(),
            timestamp_label: text(),
            signed: text(),
            object_id: text(),
            version: text(),
            ..HmacSettings::default()
        };
        let token =
            TokenSettings { object_id: text(), version: text(), ..TokenSettings::default() };
        let keys = |table: toml::Table| table.keys().cloned().collect::<BTreeSet<_>>();
        let ours = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(keys(toml::Table::try_from(hmac).unwrap()), ours(&HMAC_KEYS));
        assert_eq!(keys(toml::Table::try_from(token).unwrap()), ours(&TOKEN_KEYS));
    }
}
