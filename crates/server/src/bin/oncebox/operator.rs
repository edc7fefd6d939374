//! Who acts and why: what the audit is told of a command that changes something.

use clap::Args;
use oncebox::clock::{Clock, SystemClock};
use oncebox::limits::{DETAIL_BYTES, NAME_BYTES};
use oncebox::store::Act;

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
