//! `oncebox sources`: where webhooks come in, and the secrets that providers tell.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::effect::OUTBOX;
use oncebox::receipt::SourceNo;
use oncebox::sealed::SealingKey;
use oncebox::store::{PairedSecret, Pairing, Store};
use oncebox_server::capture::UNVERIFIED;
use oncebox_server::config::{Config, Environment, Problem, SourceConfig};
use serde_json::{Value, json};

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output::{Screen, escape, relative, shorten};

mod pair;
mod secrets;

/// List sources, and pair them with providers that tell their secret
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources list
  oncebox sources pair asana --for 10m
  oncebox sources secrets asana")]
pub(crate) struct Sources {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Pair(pair::Pair),
    Unpair(pair::Unpair),
    Secrets(secrets::Secrets),
    Forget(secrets::Forget),
}

impl Sources {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store, &config).await,
            Command::Pair(pair) => pair.run(&store, &config).await,
            Command::Unpair(unpair) => unpair.run(&store, &config).await,
            Command::Secrets(secrets) => secrets.run(&store, &config).await,
            Command::Forget(forget) => forget.run(&store, &config).await,
        };
        store.close().await;
        done
    }
}

/// A source of the configuration whose provider tells the secret, and its number.
async fn paired_source<'a>(
    store: &Arc<dyn Store>,
    config: &'a Config,
    name: &str,
) -> Result<(&'a SourceConfig, SourceNo), Failure> {
    let Some(source) = config.sources.get(name) else {
        return Err(context::no_source(name, config.sources.keys().map(String::as_str)));
    };
    if source.entry.pairing.is_none() {
        let title = &source.entry.title;
        let failure = Failure::usage(format!("{title} does not tell its secret in a handshake"));
        return Err(failure.hint(format!("put it into `secrets`. {}", source.entry.find_secret)));
    }
    // As a server does: no matter which of the two comes first.
    let number = store.register_source(name, source.renamed_from.as_deref()).await?;
    Ok((source, number))
}

/// What secrets that providers tell are sealed under.
fn sealing_key(config: &Config, source: &str) -> Result<SealingKey, Failure> {
    let wrong = |problem: Problem| Failure::configuration(problem.message()).hint(problem.hint());
    config.sealing_key().map_err(wrong)?.ok_or_else(|| wrong(config.no_master(source)))
}

/// List sources, how many secrets they have, and which wait for one
///
/// A secret is named by its fingerprint, four digits that tell it from the others of its source.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources list
  oncebox sources list --json")]
struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let now = SystemClock.now();
        let known = store.sources().await?;
        let known = known.iter().filter(|(_, name)| !name.starts_with(OUTBOX));
        let numbers: BTreeMap<&str, SourceNo> =
            known.map(|(number, name)| (name.as_str(), *number)).collect();
        let mut names: Vec<&str> = config.sources.keys().map(String::as_str).collect();
        names.extend(numbers.keys());
        names.sort_unstable();
        names.dedup();
        let most = self.listing.most().unwrap_or(names.len());
        let mut lines = Vec::new();
        for name in names.iter().take(most) {
            lines.push(Line::load(store, config, name, numbers.get(name)).await?);
        }
        let mut screen = Screen::stdout();
        if self.listing.json {
            for line in &lines {
                screen.json(&line.as_json())?;
            }
        } else if !lines.is_empty() {
            let headings = ["source", "provider", "path", "secrets", "pairing", "note"];
            screen.table(&headings, &[], lines.iter().map(|line| line.cells(now)))?;
        }
        screen.flush()?;
        self.listing.tell(lines.len(), lines.len() < names.len(), "source");
        Ok(())
    }
}

/// One source of the list.
struct Line<'a> {
    name: &'a str,
    /// None if only the store knows it.
    config: Option<&'a SourceConfig>,
    /// The fingerprints of the configured secrets; none of one that cannot be fetched from here.
    configured: Vec<Option<String>>,
    paired: Vec<PairedSecret>,
    pairing: Option<Pairing>,
}

impl<'a> Line<'a> {
    async fn load(
        store: &Arc<dyn Store>,
        config: &'a Config,
        name: &'a str,
        number: Option<&SourceNo>,
    ) -> Result<Self, Failure> {
        let config = config.sources.get(name);
        let (paired, pairing) = match number {
            Some(number) => (store.paired_secrets(*number).await?, store.pairing(*number).await?),
            None => (Vec::new(), None),
        };
        let configured = config.map(fingerprints).unwrap_or_default();
        Ok(Self { name, config, configured, paired, pairing })
    }

    fn as_json(&self) -> Value {
        let paired = self.paired.iter().map(secrets::as_json);
        json!({
            "source": self.name,
            "provider": self.config.map(|config| &config.provider),
            "configured": self.config.is_some(),
            "path": format!("/in/{}", self.name),
            "unverified": self.config.is_some_and(SourceConfig::is_capture),
            "secrets": self.configured,
            "paired": paired.collect::<Vec<_>>(),
            "pairing": self.pairing.map(|pairing| json!({
                "opened_at": pairing.opened_at.to_string(),
                "until": pairing.until.to_string(),
                "open": pairing.is_open,
                "paired": pairing.paired.map(|no| no.0),
            })),
        })
    }

    fn cells(&self, now: Timestamp) -> Vec<String> {
        let short = |text: &str| shorten(&escape(text), 40);
        let unknown = || "?".to_owned();
        let configured = self.configured.iter().map(|print| print.clone().unwrap_or_else(unknown));
        let paired = self.paired.iter().map(|secret| escape(&secret.fingerprint).into_owned());
        let prints: Vec<String> = configured.chain(paired).collect();
        let secrets = match prints.len() {
            0 => String::new(),
            number => format!("{number} ({})", prints.join(", ")),
        };
        let pairing = match self.pairing {
            Some(pairing) if pairing.is_open => {
                format!("open, ends {}", relative(pairing.until, now))
            }
            _ if self.waits() && self.paired.is_empty() => "never paired".to_owned(),
            _ => String::new(),
        };
        let note = match self.config {
            None => "not configured",
            Some(config) if config.is_capture() => UNVERIFIED,
            Some(_) => "",
        };
        vec![
            short(self.name),
            self.config.map(|config| short(&config.provider)).unwrap_or_default(),
            short(&format!("/in/{}", self.name)),
            shorten(&secrets, 60),
            pairing,
            note.to_owned(),
        ]
    }

    fn waits(&self) -> bool {
        self.config.is_some_and(SourceConfig::waits_for_secret)
    }
}

/// The fingerprints of the secrets of a configuration, as far as they can be fetched from here.
fn fingerprints(config: &SourceConfig) -> Vec<Option<String>> {
    let environment = Environment::of_process();
    let secrets = config.secrets.iter();
    let print = |secret: oncebox_verify::Secret| secret.fingerprint();
    secrets.map(|secret| secret.resolve(&environment).ok().map(print)).collect()
}
