//! `oncebox migrate`: the schema of the store.

use std::time::Duration;

use clap::{Args, Subcommand};
use oncebox::store::{self, MigrateProgress, Schema};
use serde_json::json;

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, absolute, notice};
use crate::when::duration;

/// Bring the schema of the store up to date, or show where it stands
///
/// `oncebox serve` does this by itself for SQLite and for an empty PostgreSQL. On a PostgreSQL that
/// is in use, run `oncebox migrate up` before the new release is started: servers of the new
/// release wait for it, those of the old one record meanwhile.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(subcommand)]
    act: Act,

    /// Print one JSON object per migration
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Act {
    /// Run what has not run yet
    ///
    /// On PostgreSQL each migration waits half a second at most for locks of other sessions, then
    /// tries again after a pause, so that running servers never wait behind it.
    Up {
        /// Give up after this long
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
        timeout: Duration,
    },
    /// Show what has run and what has not; changes nothing
    Status,
}

impl Migrate {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let schema = match self.act {
            Act::Up { timeout } => {
                let config = context::config(global)?;
                let tell = |progress: MigrateProgress| notice(progress.to_string());
                store::migrate_telling(config.store.url.as_str(), timeout, &tell).await?
            }
            Act::Status => {
                store::schema(context::config_or_dev(global)?.store.url.as_str()).await?
            }
        };
        let mut screen = Screen::stdout();
        if self.json {
            for migration in &schema.migrations {
                let applied_at = migration.applied_at.map(|time| time.to_string());
                let (version, name) = (migration.version, &migration.name);
                let line = json!({ "version": version, "name": name, "applied_at": applied_at });
                screen.json(&line)?;
            }
        } else {
            table(&mut screen, &schema)?;
        }
        screen.flush()?;
        Ok(())
    }
}

fn table(screen: &mut Screen, schema: &Schema) -> std::io::Result<()> {
    let rows = schema.migrations.iter().map(|migration| {
        let applied = migration.applied_at.map_or_else(|| "pending".to_owned(), absolute);
        vec![migration.version.to_string(), migration.name.clone(), applied]
    });
    screen.table(&["version", "name", "applied"], &[0], rows)?;
    if !schema.is_current() {
        screen.line("")?;
        screen.line("Run `oncebox migrate up` to bring it up to date.")?;
    }
    Ok(())
}
