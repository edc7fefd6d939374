//! `oncebox providers`: the catalogue, and how to set each provider up.

use std::io;

use clap::Args;
use oncebox_verify::custom::{HmacSettings, TokenSettings};
use oncebox_verify::{
    Field, Identity, Part, Place, Provider, Scheme, Signature, Stamp, Version, catalogue,
};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::output::{Screen, count, notice, span, wrap};

/// List the providers, or show how to set one up
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox providers              every provider
  oncebox providers stripe       where its secret is, and the configuration to paste
  oncebox providers hub          those whose name contains `hub`")]
pub(crate) struct Providers {
    /// A provider, or a part of its name
    name: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl Providers {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let all = catalogue::ALL.iter().copied();
        let Some(name) = &self.name else { return self.list(all.collect()) };
        if let Some(provider) = catalogue::find(name) {
            return self.show(provider);
        }
        let part = name.to_lowercase();
        let matches = |provider: &&Provider| {
            provider.name.contains(&part) || provider.title.to_lowercase().contains(&part)
        };
        let found: Vec<_> = all.filter(matches).collect();
        match found.as_slice() {
            [] => Err(no_provider(name)),
            [provider] => self.show(provider),
            _ => self.list(found),
        }
    }

    fn list(&self, providers: Vec<&Provider>) -> Result<(), Failure> {
        let mut screen = Screen::stdout();
        if self.json {
            for provider in providers {
                screen.json(&as_json(provider))?;
            }
        } else {
            let rows = providers.iter().map(|provider| {
                vec![
                    provider.name.to_string(),
                    provider.title.to_string(),
                    provider.schemes.first().map(in_short).unwrap_or_default(),
                    trust_of(provider).to_owned(),
                    window_of(provider),
                ]
            });
            screen.table(&["name", "title", "signature", "identity", "time window"], &[], rows)?;
            notice(format!(
                "{}; `oncebox providers NAME` shows one",
                count(providers.len(), "provider")
            ));
        }
        Ok(screen.flush()?)
    }

    fn show(&self, provider: &Provider) -> Result<(), Failure> {
        let mut screen = Screen::stdout();
        if self.json {
            screen.json(&as_json(provider))?;
            return Ok(screen.flush()?);
        }
        screen.line(screen.strong(&provider.title))?;
        screen.line("")?;
        field(&mut screen, "secret", &provider.find_secret)?;
        field(&mut screen, "paste", "into oncebox.toml:")?;
        screen.line("")?;
        for line in example(provider).lines() {
            screen.line(format!("      {line}"))?;
        }
        screen.line("")?;
        field(&mut screen, "URL", &format!("https://YOUR-HOST/in/{}", provider.name))?;
        for (number, scheme) in provider.schemes.iter().enumerate() {
            let label = if number == 0 { "signature" } else { "or" };
            field(&mut screen, label, &in_full(scheme))?;
        }
        for (number, identity) in provider.identity.iter().enumerate() {
            let label = if number == 0 { "identity" } else { "or" };
            field(&mut screen, label, &identity_words(provider, identity))?;
        }
        field(&mut screen, "ordering", &ordering(provider))?;
        field(&mut screen, "retries", &provider.retry)?;
        if !provider.notes.is_empty() {
            field(&mut screen, "note", &provider.notes)?;
        }
        if let Some(keys) = further_keys(provider) {
            field(&mut screen, "keys", keys)?;
        }
        field(&mut screen, "docs", &provider.docs)?;
        field(&mut screen, "try", &format!("oncebox send {}", provider.name))?;
        Ok(screen.flush()?)
    }
}

/// A label and its text, in lines that fit an ordinary terminal.
fn field(screen: &mut Screen, label: &str, text: &str) -> io::Result<()> {
    for (number, line) in wrap(text, 76).iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        screen.line(format!("  {label:9}  {line}"))?;
    }
    Ok(())
}

/// What to say when the catalogue has no such provider.
pub(crate) fn no_provider(name: &str) -> Failure {
    let failure =
        Failure::not_found(format!("there is no provider `{}`", crate::output::escape(name)));
    match catalogue::nearest(name) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure
            .hint("`oncebox providers` lists all; `hmac` and `token` can be told how others sign"),
    }
}

/// The configuration to paste.
fn example(provider: &Provider) -> String {
    let name = &provider.name;
    let variable = name.to_uppercase().replace('-', "_");
    let mut text =
        format!("[sources.{name}]\nprovider = \"{name}\"\nsecrets = [\"env:{variable}_SECRET\"]\n");
    text.push_str(&generic_defaults(provider).unwrap_or_default());
    if provider.signs_url() {
        text.push_str(&format!(
            "public_url = \"https://YOUR-HOST/in/{name}\"   # signed, so it must be exactly this\n"
        ));
    }
    text
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
fn further_keys(provider: &Provider) -> Option<&'static str> {
    match provider.name.as_ref() {
        "hmac" => Some(
            "also signature_label, signature_separator, timestamp_header, timestamp_label, signed \
             (such as \"{timestamp}.{body}\"), object_id, version",
        ),
        "token" => Some("also object_id, version"),
        _ => None,
    }
}

/// The header that carries the proof; none if it is in the body.
pub(crate) fn signature_header(scheme: &Scheme) -> Option<&str> {
    scheme.header()
}

fn in_short(scheme: &Scheme) -> String {
    let place = match scheme.signature() {
        Some(signature) => place_words(&signature.place),
        None => signature_header(scheme).unwrap_or_default().to_owned(),
    };
    format!("{} in {place}", scheme.name())
}

fn in_full(scheme: &Scheme) -> String {
    let window = match stamp(scheme) {
        Some(stamp) => format!(
            "; the time in {} may be {} off",
            place_words(&stamp.place),
            span(stamp.tolerance_secs.unwrap_or_default().into())
        ),
        None => "; no time is signed".to_owned(),
    };
    let covers = match (scheme, scheme.signature()) {
        (_, Some(signature)) => format!(" over {}", template(signature)),
        (Scheme::Special(_), _) => " over the URL and the form".to_owned(),
        _ => ", a credential that covers nothing of the request".to_owned(),
    };
    format!("{}{covers}{window}", in_short(scheme))
}

fn template(signature: &Signature) -> String {
    let parts = signature.signed.iter().map(|part| match part {
        Part::Timestamp => "{timestamp}".to_owned(),
        Part::Body => "{body}".to_owned(),
        Part::Url => "{url}".to_owned(),
        Part::Method => "{method}".to_owned(),
        Part::Header(name) => format!("{{{name}}}"),
        Part::Json(pointer) => format!("{{{pointer}}}"),
        Part::Text(text) => text.escape_debug().to_string(),
        other => format!("{{{other:?}}}"),
    });
    parts.collect()
}

fn place_words(place: &Place) -> String {
    match place {
        Place::Header(header) => header.to_string(),
        Place::Label { header, label, .. } => format!("{header} {label}="),
        Place::Json(pointer) => format!("the body at {pointer}"),
        other => format!("{other:?}"),
    }
}

fn stamp(scheme: &Scheme) -> Option<&Stamp> {
    scheme.signature().and_then(|signature| signature.timestamp.as_ref())
}

fn window_of(provider: &Provider) -> String {
    match provider.schemes.first().and_then(stamp) {
        Some(stamp) => format!("±{}", span(stamp.tolerance_secs.unwrap_or_default().into())),
        None => "none".to_owned(),
    }
}

fn trust_of(provider: &Provider) -> &'static str {
    provider.identity.first().map_or("none", |identity| trust(provider, identity))
}

/// How far an identity can be trusted when the strongest scheme of the provider is used.
fn trust(provider: &Provider, identity: &Identity) -> &'static str {
    let signed = |field: &Field| provider.schemes.first().is_some_and(|best| best.covers(field));
    let all_signed = match identity {
        Identity::Field(field) => signed(field),
        Identity::Joined(fields) | Identity::JoinedDigest(fields) => fields.iter().all(signed),
        Identity::Digest => return "digest",
    };
    if all_signed { "signed" } else { "transport" }
}

fn identity_words(provider: &Provider, identity: &Identity) -> String {
    let place = match identity {
        Identity::Field(field) => field_words(field),
        Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
            fields.iter().map(field_words).collect::<Vec<_>>().join(" with ")
        }
        Identity::Digest => return "the digest of the body".to_owned(),
    };
    match trust(provider, identity) {
        "signed" => format!("{place} (signed)"),
        _ if provider.guards_twins() => {
            format!("{place} (not signed: the digest of the body guards it)")
        }
        _ => format!("{place} (not signed)"),
    }
}

fn field_words(field: &Field) -> String {
    match field {
        Field::Json(pointer) => format!("{pointer} of the body"),
        Field::Header(name) => format!("header {name}"),
        Field::Form(name) => format!("form field {name}"),
        other => format!("{other:?}"),
    }
}

fn ordering(provider: &Provider) -> String {
    let words = |version: &Version| field_words(&version.field);
    let versions: Vec<_> = provider.version.iter().map(words).collect();
    let objects: Vec<_> = provider.object.iter().map(field_words).collect();
    match (objects.is_empty(), versions.is_empty()) {
        (true, _) => "none: the events name no object".to_owned(),
        (false, true) => format!("none; the object is {}", objects.join(", or ")),
        (false, false) => {
            format!("{} orders the events of {}", versions.join(", or "), objects.join(", or "))
        }
    }
}

fn as_json(provider: &Provider) -> Value {
    let scheme = |scheme: &Scheme| {
        json!({
            "scheme": scheme.name(),
            "header": signature_header(scheme),
            "signs_timestamp": scheme.signs_timestamp(),
            "tolerance_secs": stamp(scheme).map(|stamp| stamp.tolerance_secs),
        })
    };
    let identity = |identity: &Identity| {
        let from = match identity {
            Identity::Field(field) => field_words(field),
            Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
                fields.iter().map(field_words).collect::<Vec<_>>().join(" with ")
            }
            Identity::Digest => "digest of the body".to_owned(),
        };
        json!({ "from": from, "trust": trust(provider, identity) })
    };
    json!({
        "provider": provider.name,
        "title": provider.title,
        "schemes": provider.schemes.iter().map(scheme).collect::<Vec<_>>(),
        "identity": provider.identity.iter().map(identity).collect::<Vec<_>>(),
        "object_id": provider.object.iter().map(field_words).collect::<Vec<_>>(),
        "version": provider.version.iter().map(|v| field_words(&v.field)).collect::<Vec<_>>(),
        "retry": provider.retry,
        "find_secret": provider.find_secret,
        "notes": provider.notes,
        "docs": provider.docs,
        "config": example(provider),
    })
}
