//! `oncebox sources`: where webhooks come in, and the secrets that providers tell.

use std::sync::Arc;

use clap::{Args, Subcommand};
use oncebox::receipt::SourceNo;
use oncebox::sealed::SealingKey;
use oncebox::store::Store;
use oncebox_server::config::{Config, Problem, SourceConfig};

use crate::Global;
use crate::context;
use crate::exit::Failure;

mod list;
mod pair;
pub(crate) mod rejected;
mod secrets;

/// List sources and what they rejected, and pair them with providers that tell their secret
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources list
  oncebox sources rejected stripe
  oncebox sources pair asana --for 10m
  oncebox sources secrets asana")]
pub(crate) struct Sources {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Rejected(rejected::Rejected),
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
            Command::Rejected(rejected) => rejected.run(&store, &config).await,
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
