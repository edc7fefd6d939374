//! `oncebox migrate`: the schema of the store.

use clap::{Args, Subcommand};
use oncebox::store::{self, Schema};
use serde_json::json;

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, absolute};

/// Bring the schema of the store up to date, or show where it stands
///
/// `oncebox serve` does this by itself when it starts.
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
    Up,
    /// Show what has run and what has not; changes nothing
    Status,
}

impl Migrate {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let schema = match self.act {
            Act::Up => store::migrate(context::config(global)?.store.url.as_str()).await?,
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
        screen
            .line("Run `oncebox migrate up`, or start `oncebox serve`, to bring it up to date.")?;
    }
    Ok(())
}
