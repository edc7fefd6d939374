//! `oncebox audit`: what operators did.

use std::sync::Arc;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::limits::LIST_PAGE;
use oncebox::store::{AuditRow, Store};
use serde_json::{Value, json};

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output::{Cell, Column, Screen, absolute, age, escape};

/// List what operators did, through whichever door
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox audit list
  oncebox audit list --all --json")]
pub(crate) struct Audit {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
}

impl Audit {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let store = context::store(global).await?;
        let Command::List(list) = self.command;
        let done = list.run(&store).await;
        store.close().await;
        done
    }
}

/// List acts, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox audit list --limit 10
  oncebox audit list --all --json")]
struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let now = SystemClock.now();
        let mut screen = Screen::stdout();
        let (mut shown, mut before) = (0, None);
        let mut more = true;
        while more {
            let asked = self.listing.most().map_or(LIST_PAGE, |most| LIST_PAGE.min(most - shown));
            if asked == 0 {
                break;
            }
            let page = store.audit(before, asked).await?;
            before = page.last().map(|row| row.no);
            shown += page.len();
            more = page.len() == asked;
            self.print(&mut screen, &page, now)?;
            screen.flush()?;
        }
        self.listing.tell(shown, more, "act");
        Ok(())
    }

    fn print(&self, screen: &mut Screen, page: &[AuditRow], now: Timestamp) -> Result<(), Failure> {
        if self.listing.json {
            for row in page {
                screen.json(&as_json(row))?;
            }
        } else if !page.is_empty() {
            screen.fitted(&COLUMNS, page.iter().map(|row| cells(row, now)))?;
        }
        Ok(())
    }
}

const COLUMNS: [Column; 7] = [
    Column::new("age"),
    Column::text("who", 8),
    Column::text("act", 14),
    Column::text("subject", 16),
    Column::text("why", 14),
    Column::text("via", 7),
    Column::new("at"),
];

fn cells(row: &AuditRow, now: Timestamp) -> Vec<Cell> {
    vec![
        age(row.at, now).into(),
        escape(&row.who).into(),
        escape(&row.act).into(),
        escape(&row.subject).into(),
        row.why.as_deref().map(escape).unwrap_or_default().into(),
        escape(&row.via).into(),
        absolute(row.at).into(),
    ]
}

/// An act; the fields are never renamed.
fn as_json(row: &AuditRow) -> Value {
    json!({
        "no": row.no,
        "at": row.at.to_string(),
        "who": row.who,
        "via": row.via,
        "act": row.act,
        "subject": row.subject,
        "why": row.why,
    })
}
