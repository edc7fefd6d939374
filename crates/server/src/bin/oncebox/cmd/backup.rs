//! `oncebox backup`: a copy of the store.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use oncebox::store::{self, BackupProgress};
use serde_json::json;

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, notice};

/// Copy the store to a file, beside a running server or without one
///
/// For SQLite: one moment of the store, checked and synced, there as a whole or not at all. The
/// server goes on recording meanwhile. To restore it, stop the server, move the store and its
/// `-wal` and `-shm` files away, put the copy in its place, and start again. A PostgreSQL has tools
/// of its own: this command says which.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox backup /backups/oncebox-2026-01-02.db
  oncebox backup --force /backups/latest.db")]
pub(crate) struct Backup {
    /// The file to write
    #[arg(value_name = "PATH")]
    to: PathBuf,

    /// Replace a file that is there
    #[arg(long)]
    force: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let url = config.store.url.as_str();
        if !url.starts_with("sqlite://") {
            return Err(use_its_own_tools());
        }
        let bar = bar();
        let shown = bar.clone();
        let tell = move |progress| match progress {
            BackupProgress::Copying { done, all } => {
                shown.set_length(all);
                shown.set_position(done);
            }
            BackupProgress::Checking => shown.set_message("checking the copy"),
        };
        notice(format!("copying {} to {}", config.store.url, self.to.display()));
        let copied = store::backup(url, self.to.clone(), self.force, tell).await;
        bar.finish_and_clear();
        let bytes = copied?;
        let mut screen = Screen::stdout();
        let path = self.to.display().to_string();
        match self.json {
            true => screen.json(&json!({ "path": path, "bytes": bytes, "checked": true }))?,
            false => screen.line(format!("{path}: {bytes} bytes, checked"))?,
        }
        screen.flush()?;
        Ok(())
    }
}

/// Drawn on stderr, and only if that is a terminal.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}% {msg}");
    let bar = ProgressBar::new(0);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn use_its_own_tools() -> Failure {
    Failure::failed("this store is a PostgreSQL, which `oncebox backup` does not copy").hint(
        "use pg_basebackup with WAL archiving for the whole server, or pg_dump for the database; \
         take the schema `oncebox` and your own tables in one dump, for effects are in both. Stop \
         every server before you restore. docs/operating.md tells what a restore means for leases \
         and effects",
    )
}
