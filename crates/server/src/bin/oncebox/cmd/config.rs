//! `oncebox config`: the configuration itself.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};
use oncebox_server::config::{Config as Configuration, DEFAULT_FILE, STARTER};

use crate::Global;
use crate::cmd::check::Check;
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
        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
    },
}

impl Config {
    pub(crate) fn run(self, global: &Global) -> Result<(), Failure> {
        match self.act {
            Act::Print => {
                let mut screen = Screen::stdout();
                screen.raw(context::config_or_dev(global)?.print().as_bytes())?;
                Ok(screen.flush()?)
            }
            Act::Check(check) => check.run(global),
            Act::Schema => {
                let mut screen = Screen::stdout();
                screen.line(format!("{:#}", Configuration::schema()))?;
                Ok(screen.flush()?)
            }
            Act::Init { force } => init(global, force),
        }
    }
}

fn init(global: &Global, force: bool) -> Result<(), Failure> {
    let file = global.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    let mut options = fs::OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let written = options.open(file).and_then(|mut file| file.write_all(STARTER.as_bytes()));
    written.map_err(|error| {
        let failure = Failure::failed(format!("cannot write {}: {error}", file.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => failure.hint("--force replaces it"),
            _ => failure,
        }
    })?;
    notice(format!("wrote {}; set STRIPE_SECRET, then run `oncebox check`", file.display()));
    Ok(())
}
