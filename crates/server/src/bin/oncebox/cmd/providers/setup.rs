//! The configuration a provider needs, ready to paste.

use oncebox_verify::custom::{HmacSettings, TokenSettings};
use oncebox_verify::{Provider, Setting};

/// The source to paste.
pub(crate) fn example(provider: &Provider) -> String {
    let name = &provider.name;
    let mut text = format!("[sources.{name}]\nprovider = \"{name}\"\n");
    if !provider.needs_no_secret() {
        let variable = variable(provider);
        text.push_str(&format!("secrets = [\"env:{variable}\"]\n"));
    }
    for setting in provider.settings.iter() {
        text.push_str(&setting_line(setting));
    }
    text.push_str(&generic_defaults(provider).unwrap_or_default());
    if provider.signs_url() {
        text.push_str(&format!(
            "public_url = \"https://YOUR-HOST/in/{name}\"   # signed, so it must be exactly this\n"
        ));
    }
    text
}

/// The variable of the environment that holds the secret.
pub(crate) fn variable(provider: &Provider) -> String {
    format!("{}_SECRET", provider.name.to_uppercase().replace('-', "_"))
}

fn setting_line(setting: &Setting) -> String {
    let Setting { key, needed, .. } = setting;
    let off = if *needed { "" } else { "# " };
    let value = key.to_uppercase();
    format!("{off}{key} = \"YOUR_{value}\"\n")
}

/// The keys of a generic scheme with their defaults; none for the others.
fn generic_defaults(provider: &Provider) -> Option<String> {
    let defaults = match provider.name.as_ref() {
        "hmac" => toml::to_string(&HmacSettings::default()),
        "token" => toml::to_string(&TokenSettings::default()),
        _ => return None,
    };
    defaults.ok()
}

/// The keys of a generic scheme that have no default.
pub(super) fn further_keys(provider: &Provider) -> Option<&'static str> {
    match provider.name.as_ref() {
        "hmac" => Some(
            "also signature_label, signature_separator, timestamp_header, timestamp_label, signed \
             (such as \"{timestamp}.{body}\"), object_id, version",
        ),
        "token" => Some("also object_id, version"),
        _ => None,
    }
}
