//! `oncebox retention`: removing what has expired.

use std::sync::Arc;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use oncebox::clock::SystemClock;
use oncebox::retention::{Removed, Retention as Keeper};

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::operator::{Operator, reason};
use crate::output::{Screen, count};

/// Remove payloads, identities and effects that have expired
///
/// `oncebox serve` does this by itself, in small steps.
#[derive(Debug, Args)]
pub(crate) struct Retention {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    Run(Run),
}

/// One whole pass, now
#[derive(Debug, Args)]
struct Run {
    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

impl Retention {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let Act::Run(run) = self.act;
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let act = run.operator.act(run.reason.as_deref());
        store.note_act(&act, "retention.run", "what has expired").await?;
        let (clock, default) = (Arc::new(SystemClock), config.retention.keep());
        let keeper = Keeper::new(store.clone(), clock, default, config.keeps())
            .keeping_effects(config.retention.effects());
        // Drawn on stderr, and only if that is a terminal.
        let bar = ProgressBar::new_spinner();
        let removed = keeper.run_once(|removed| bar.set_message(words(removed))).await;
        bar.finish_and_clear();
        store.close().await;
        let mut screen = Screen::stdout();
        screen.line(format!("removed {}", words(removed?)))?;
        screen.flush()?;
        Ok(())
    }
}

fn words(removed: Removed) -> String {
    let identities = match removed.identities {
        1 => "1 identity".to_owned(),
        many => format!("{many} identities"),
    };
    let (receipts, effects) = (removed.receipts, removed.effects);
    format!("{}, {identities} and {}", count(receipts, "receipt"), count(effects, "effect"))
}
