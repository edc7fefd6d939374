//! Where a source says that identity, type, object and version are.

use std::borrow::Cow;

use super::{SettingsError, header_name, wrong};
use crate::provider::{Field, Identity, Payload, Provider, Scheme, TypeRule, Unit, Version};
use crate::special::{Special, http_message};

/// Sets all that a generic source says.
pub(super) fn set_fields(
    provider: &mut Provider,
    event_id: &str,
    event_type: &str,
    (object_id, version): (&Option<String>, &Option<String>),
) -> Result<(), SettingsError> {
    set_identity(provider, event_id)?;
    set_type(provider, event_type)?;
    set_object(provider, object_id.as_deref(), version.as_deref())?;
    // A body of which nothing is read may be anything.
    if !provider.reads_body() {
        provider.payload = Payload::Any;
    }
    Ok(())
}

/// The provider with the fields that a source names, as far as it names any and the entry lets it.
///
/// ```
/// use oncebox_verify::{Field, Identity, catalogue, custom};
///
/// let entry = catalogue::find("http-message-signatures").unwrap();
/// let said = |key: &str| (key == "event_id").then(|| "header:idempotency-key".to_owned());
/// let provider = custom::with_fields(entry, said)?;
/// assert_eq!(provider.identity[..], [Identity::Field(Field::Header("idempotency-key".into()))]);
/// # Ok::<(), custom::SettingsError>(())
/// ```
pub fn with_fields(
    provider: &Provider,
    said: impl Fn(&'static str) -> Option<String>,
) -> Result<Provider, SettingsError> {
    let mut provider = provider.clone();
    if !provider.settings.iter().any(|setting| setting.key == "event_id") {
        return Ok(provider);
    }
    check_message_settings(&provider, &said)?;
    if let Some(spec) = said("event_id") {
        set_identity(&mut provider, &spec)?;
    }
    if let Some(spec) = said("event_type") {
        set_type(&mut provider, &spec)?;
    }
    set_object(&mut provider, said("object_id").as_deref(), said("version").as_deref())?;
    Ok(provider)
}

/// Refuses what would never match, or would match for ever, where message signatures are checked.
fn check_message_settings(
    provider: &Provider,
    said: impl Fn(&'static str) -> Option<String>,
) -> Result<(), SettingsError> {
    if !provider.schemes.contains(&Scheme::Special(Special::HttpMessage)) {
        return Ok(());
    }
    if let Some(text) = said("tolerance").filter(|text| http_message::tolerance(text).is_none()) {
        return Err(wrong(
            "tolerance",
            format!("`{text}` is not between 1 and 86400 seconds"),
            "write a number of seconds; 300 is usual",
        ));
    }
    let covered = said("covered").unwrap_or_default();
    let unknown = http_message::said_parts(&covered).find(|name| !http_message::is_part(name));
    match unknown {
        Some(name) => Err(wrong(
            "covered",
            format!("`{name}` is no part of a request that can be covered"),
            "@method, @target-uri, @request-target, @path, @query, @authority, @scheme, or the \
             name of a header",
        )),
        None => Ok(()),
    }
}

fn set_identity(provider: &mut Provider, spec: &str) -> Result<(), SettingsError> {
    let identity = match spec {
        "digest" => Identity::Digest,
        spec => Identity::Field(field("event_id", spec)?),
    };
    provider.identity = Cow::Owned(vec![identity]);
    Ok(())
}

fn set_type(provider: &mut Provider, spec: &str) -> Result<(), SettingsError> {
    let first = field("event_type", spec)?;
    provider.event_type = Cow::Owned(vec![TypeRule { text: Cow::Borrowed(""), first, then: None }]);
    Ok(())
}

fn set_object(
    provider: &mut Provider,
    object_id: Option<&str>,
    version: Option<&str>,
) -> Result<(), SettingsError> {
    if let Some(spec) = object_id {
        provider.object = Cow::Owned(vec![field("object_id", spec)?]);
    }
    if let Some(spec) = version {
        let field = field("version", spec)?;
        provider.version = Cow::Owned(vec![Version { field, unit: Unit::Plain }]);
    }
    Ok(())
}

/// Reads where a value is: `/json/pointer`, `header:NAME` or `form:NAME`.
fn field(name: &'static str, spec: &str) -> Result<Field, SettingsError> {
    if let Some(header) = spec.strip_prefix("header:") {
        return Ok(Field::Header(header_name(name, header)?));
    }
    if let Some(form) = spec.strip_prefix("form:").filter(|form| !form.is_empty()) {
        return Ok(Field::Form(Cow::Owned(form.to_owned())));
    }
    if spec.starts_with('/') && spec.len() > 1 {
        return Ok(Field::Json(Cow::Owned(spec.to_owned())));
    }
    let digest = if name == "event_id" { ", or digest" } else { "" };
    Err(wrong(
        name,
        format!("`{spec}` does not say where the value is"),
        format!("/a/json/pointer, header:NAME or form:NAME{digest}"),
    ))
}
