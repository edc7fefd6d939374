//! `oncebox config`: the configuration itself.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};
use oncebox_server::config::{Config as Configuration, DEFAULT_FILE, STARTER};

use oncebox_verify::{Provider, catalogue};

use crate::Global;
use crate::cmd::check::Check;
use crate::cmd::providers::{no_provider, setup};
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, notice};

/// Print, check, describe or begin a configuration
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Print the configuration in force: file, environment and defaults, without secrets
    Print,
    /// The same as `oncebox check`
    Check(Check),
    /// Print the JSON Schema of the file, for editors
    Schema,
    /// Write a first oncebox.toml
    Init {
        /// A provider to receive from; several may be given [default: stripe]
        #[arg(long = "provider", value_name = "NAME")]
        providers: Vec<String>,

        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
    },
}

impl Config {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        match self.act {
            Act::Print => {
                let mut screen = Screen::stdout();
                screen.raw(context::config_or_dev(global)?.print().as_bytes())?;
                Ok(screen.flush()?)
            }
            Act::Check(check) => check.run(global).await,
            Act::Schema => {
                let mut screen = Screen::stdout();
                screen.line(format!("{:#}", Configuration::schema()))?;
                Ok(screen.flush()?)
            }
            Act::Init { providers, force } => init(global, &providers, force),
        }
    }
}

fn init(global: &Global, names: &[String], force: bool) -> Result<(), Failure> {
    let mut providers = Vec::new();
    for name in names {
        providers.push(catalogue::find(name).ok_or_else(|| no_provider(name))?);
    }
    let file = global.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    let mut options = fs::OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let text = starter(&providers);
    let written = options.open(file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let failure = Failure::failed(format!("cannot write {}: {error}", file.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => failure.hint("--force replaces it"),
            _ => failure,
        }
    })?;
    let secrets: Vec<String> = match providers.as_slice() {
        [] => vec!["STRIPE_SECRET".to_owned()],
        some => some.iter().filter(|p| !p.needs_no_secret()).map(|p| setup::variable(p)).collect(),
    };
    let set = match secrets.as_slice() {
        [] => String::new(),
        some => format!("set {}, then ", some.join(" and ")),
    };
    notice(format!("wrote {}; {set}run `oncebox check`", file.display()));
    notice("note: it has no route yet; uncomment [routes.app] to have events delivered");
    Ok(())
}

/// A first configuration with these providers, each with what it needs.
fn starter(providers: &[&Provider]) -> String {
    if providers.is_empty() {
        return STARTER.to_owned();
    }
    let (front, route) = match (STARTER.find("[sources."), STARTER.find("# Where events go.")) {
        (Some(sources), Some(route)) => (&STARTER[..sources], &STARTER[route..]),
        _ => (STARTER, ""),
    };
    let mut text = front.to_owned();
    for provider in providers {
        text.push_str(&format!("# {}: {}\n", provider.title, provider.find_secret));
        for setting in provider.settings.iter() {
            text.push_str(&format!("# {}: {}\n", setting.key, setting.help));
        }
        text.push_str(&setup::example(provider));
        text.push('\n');
    }
    let names: Vec<String> = providers.iter().map(|p| format!("\"{}\"", p.name)).collect();
    text.push_str(&route.replace("\"stripe\"", &names.join(", ")));
    text
}
