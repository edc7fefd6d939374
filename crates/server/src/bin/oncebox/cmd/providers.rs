//! `oncebox providers`: the catalogue, and how to set each provider up.

use std::io;
use std::path::PathBuf;

use clap::Args;
use oncebox_verify::{Provider, catalogue};

use crate::exit::Failure;
use crate::output::{Column, Screen, count, notice, wrap};

mod json;
mod pages;
pub(crate) mod setup;
mod words;

use words::{identity_words, in_full, in_short, ordering, trust_of, window_of};

/// List the providers, or show how to set one up
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox providers              every provider
  oncebox providers stripe       where its secret is, and the configuration to paste
  oncebox providers hub          those whose name contains `hub`
  oncebox providers payments     those of a group")]
pub(crate) struct Providers {
    /// A provider, a part of its name, or a group
    name: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Write the pages of the documentation into this folder
    #[arg(long, hide = true, value_name = "FOLDER")]
    pages: Option<PathBuf>,
}

const COLUMNS: [Column; 6] = [
    Column::new("name"),
    Column::text("title", 12),
    Column::text("signature", 16),
    Column::new("identity"),
    Column::new("time window"),
    Column::new(""),
];

impl Providers {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if let Some(folder) = &self.pages {
            return pages::write(folder);
        }
        let all = catalogue::ALL.iter().copied();
        let Some(name) = &self.name else { return self.list(&all.collect::<Vec<_>>()) };
        if let Some(provider) = catalogue::find(name) {
            return self.show(provider);
        }
        let part = name.to_lowercase();
        let matches = |provider: &&Provider| {
            let group = catalogue::group_of(provider);
            [&provider.name, &provider.title].iter().any(|text| text.to_lowercase().contains(&part))
                || group.is_some_and(|group| group.is_called(&part))
        };
        let found: Vec<_> = all.filter(matches).collect();
        match found.as_slice() {
            [] => Err(no_provider(name)),
            [provider] => self.show(provider),
            _ => self.list(&found),
        }
    }

    fn list(&self, providers: &[&Provider]) -> Result<(), Failure> {
        let mut screen = Screen::stdout();
        if self.json {
            for provider in providers {
                screen.json(&json::of(provider))?;
            }
        } else {
            let rows = providers.iter().map(|provider| {
                vec![
                    provider.name.to_string().into(),
                    provider.title.to_string().into(),
                    provider.schemes.first().map(in_short).unwrap_or_default().into(),
                    trust_of(provider).into(),
                    window_of(provider).into(),
                    if provider.experimental { "experimental" } else { "" }.into(),
                ]
            });
            screen.fitted(&COLUMNS, rows)?;
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
            screen.json(&json::of(provider))?;
            return Ok(screen.flush()?);
        }
        screen.line(screen.strong(&provider.title))?;
        screen.line("")?;
        if provider.experimental {
            let warning = "not all of this entry could be confirmed; try it before you rely on it";
            field(&mut screen, "caution", warning)?;
        }
        field(&mut screen, "secret", &provider.find_secret)?;
        for setting in provider.settings.iter() {
            field(&mut screen, &setting.key, &setting.help)?;
        }
        field(&mut screen, "paste", "into oncebox.toml:")?;
        screen.line("")?;
        for line in setup::example(provider).lines() {
            screen.line(format!("      {line}"))?;
        }
        screen.line("")?;
        field(&mut screen, "URL", &format!("https://YOUR-HOST/in/{}", provider.name))?;
        show_reading(&mut screen, provider)?;
        field(&mut screen, "retries", &words::retry_words(provider))?;
        if !provider.recovery.is_empty() {
            field(&mut screen, "missed", &provider.recovery)?;
        }
        if !provider.notes.is_empty() {
            field(&mut screen, "note", &provider.notes)?;
        }
        if let Some(keys) = setup::further_keys(provider) {
            field(&mut screen, "keys", keys)?;
        }
        field(&mut screen, "docs", &provider.docs)?;
        field(&mut screen, "try", &format!("oncebox send {}", provider.name))?;
        Ok(screen.flush()?)
    }
}

/// How requests are proven and read.
fn show_reading(screen: &mut Screen, provider: &Provider) -> io::Result<()> {
    for (number, scheme) in provider.schemes.iter().enumerate() {
        let label = if number == 0 { "signature" } else { "or" };
        field(screen, label, &in_full(scheme))?;
    }
    if let Some(words) = words::choice_words(provider) {
        field(screen, "scheme", &words)?;
    }
    for (number, identity) in provider.identity.iter().enumerate() {
        let label = if number == 0 { "identity" } else { "or" };
        field(screen, label, &identity_words(provider, identity))?;
    }
    if let Some(words) = words::rate_words(provider) {
        field(screen, "rate", &words)?;
    }
    for (label, words) in words::odd_words(provider) {
        field(screen, label, &words)?;
    }
    if !provider.batches.is_empty() {
        field(screen, "batches", "one request may carry several events; each is a receipt")?;
    }
    if !provider.handshakes.is_empty() || provider.pairing.is_some() {
        field(screen, "handshake", &words::handshake_words(provider))?;
    }
    field(screen, "ordering", &ordering(provider))
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
