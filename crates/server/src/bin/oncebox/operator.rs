//! Who acts, why, and whether they are sure: of a command that changes something.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use oncebox::clock::{Clock, SystemClock};
use oncebox::limits::{DETAIL_BYTES, NAME_BYTES};
use oncebox::store::Act;

use crate::exit::Failure;

/// Who does it, as every command that changes something takes it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Operator {
    /// Who does this, for the audit [default: $USER]
    #[arg(long, env = "ONCEBOX_OPERATOR", value_name = "NAME", value_parser = name)]
    by: Option<String>,
}

impl Operator {
    /// The act, as the store is told.
    pub(crate) fn act(&self, why: Option<&str>) -> Act {
        let user = || std::env::var("USER").ok().filter(|user| name(user).is_ok());
        Act {
            who: self.by.clone().or_else(user).unwrap_or_else(|| "unknown".to_owned()),
            via: "cli",
            why: why.map(str::to_owned),
            at: SystemClock.now(),
        }
    }
}

/// Reads who acts; for clap.
fn name(text: &str) -> Result<String, String> {
    bounded(text, NAME_BYTES)
}

/// Reads why somebody acts; for clap.
pub(crate) fn reason(text: &str) -> Result<String, String> {
    bounded(text, DETAIL_BYTES)
}

fn bounded(text: &str, most: usize) -> Result<String, String> {
    match text.trim() {
        "" => Err("it must not be empty".to_owned()),
        text if text.len() > most => Err(format!("it must not be longer than {most} bytes")),
        text => Ok(text.to_owned()),
    }
}

/// Whether there is a person to ask who did not say yes before.
pub(crate) fn asks(yes: bool) -> bool {
    !yes && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person, if there is one and they did not say yes before.
pub(crate) fn confirm(yes: bool, question: &str) -> Result<(), Failure> {
    if !asks(yes) {
        return Ok(());
    }
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("not confirmed; nothing was changed")),
    }
}
