//! `oncebox deliveries show`: where one delivery stands, how it came there, and what can be done.

use std::sync::Arc;

use clap::Args;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Reason, State};
use oncebox::store::{DeliveryRow, Store};

use super::view::{Routes, Shown};
use super::waits_for;
use crate::cmd::receipts::history::History;
use crate::exit::Failure;
use crate::ids;
use crate::output::{Screen, escape};

/// Show one delivery: its state, every attempt, what it waits for and what can be done
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox deliveries show 0199c2f0-7e4a.1
  oncebox deliveries show evt_123

Exit codes: 0 shown, 2 it means several, 3 not found.")]
pub(super) struct Show {
    /// The delivery, or the receipt or event if that has no other: its id, or the beginning of it
    #[arg(value_name = "DELIVERY")]
    id: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let delivery = ids::delivery(store, routes, &self.id).await?;
        let history = History::of_delivery(store, routes, delivery).await?;
        let Some((row, shown)) = history.only() else {
            return Err(Failure::not_found(format!("there is no delivery {delivery}"))
                .hint("`oncebox deliveries list` shows those there are"));
        };
        let mut screen = Screen::stdout();
        if self.json {
            screen.json(&history.as_json()[0])?;
        } else {
            let mut line = |label: &str, text: &str| screen.line(format!("{label:11} {text}"));
            line("event id", &escape(&row.event_id))?;
            line("type", &escape(&row.event_type))?;
            line("source", &escape(&row.source))?;
            if let Some(object) = &row.object {
                line("object", &escape(object))?;
            }
            history.print(&mut screen, SystemClock.now())?;
            if let Some(waits) = waits_for(row, shown) {
                screen.line(format!("{:11} {waits}", "waits for"))?;
            }
            for next in ways_out(row, shown) {
                screen.line(format!("{:11} {next}", "next"))?;
            }
        }
        Ok(screen.flush()?)
    }
}

/// What an operator can do about a delivery in this state.
fn ways_out(row: &DeliveryRow, shown: Shown) -> Vec<String> {
    let (id, route) = (row.delivery, escape(&row.route));
    let (receipt, effect) = (id.receipt, row.waits_for.as_deref().map(escape).unwrap_or_default());
    match (shown.state, shown.reason) {
        (State::Dead, _) => vec![
            format!("oncebox replay {receipt} --route {route}"),
            format!("oncebox dead discard {id} --reason TEXT"),
        ],
        (State::Held, Some(Reason::Paused)) => vec![format!("oncebox routes resume {route}")],
        (State::Held, Some(Reason::NoRoute)) => Vec::new(),
        (State::Held, Some(Reason::UnknownEffect)) => {
            vec![format!("oncebox effects settle {effect} --done (or --not-done)")]
        }
        (State::Held, _) => vec![
            format!("oncebox held release {id} --reason TEXT"),
            format!("oncebox held discard {id} --reason TEXT"),
        ],
        (State::Skipped, _) => vec![format!("oncebox replay {receipt} --route {route}")],
        _ => Vec::new(),
    }
}
