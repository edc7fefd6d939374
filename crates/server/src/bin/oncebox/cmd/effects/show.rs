//! `oncebox effects show`: everything known of one effect.

use clap::Args;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{DeliveryId, Reason, State};
use oncebox::effect::{Effect, EffectKind, EffectState, Evidence};
use oncebox::limits::LIST_PAGE;
use oncebox::store::{DeliveryFilter, EffectConflict, Store};
use oncebox_server::api::effects::json::EffectJson;
use serde::Serialize;
use serde_json::{Value, json};

use super::find;
use crate::cmd::receipts::both;
use crate::exit::Failure;
use crate::output::{Screen, count, escape, notice};

/// Show everything known of one effect
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox effects show charge:in_456
  oncebox effects show charge:in_456 --json

Exit codes: 0 shown, 3 not found.")]
pub(super) struct Show {
    /// The key, as `oncebox effects list` shows it
    key: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// An effect and whom it concerns beside its owner; the fields are never renamed.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    effect: EffectJson,
    /// The deliveries that found it done.
    found_by: Vec<Value>,
    /// The deliveries that are held for it.
    held: Vec<String>,
}

impl Show {
    pub(super) async fn run(self, store: &dyn Store) -> Result<(), Failure> {
        let effect = find(store, &self.key).await?;
        let conflicts = store.effect_conflicts(&effect.key, LIST_PAGE).await?;
        let held = held_for(store, &effect.key).await?;
        let mut screen = Screen::stdout();
        if self.json {
            let found_by = conflicts.iter().map(conflict_as_json).collect();
            let held = held.iter().map(DeliveryId::to_string).collect();
            screen.json(&Whole { effect: EffectJson::from(&effect), found_by, held })?;
        } else {
            let now = SystemClock.now();
            print(&mut screen, &effect, now)?;
            print_conflicts(&mut screen, &effect, &conflicts, now)?;
            for delivery in &held {
                screen.line(format!("{:11} delivery {delivery} waits for it", "held"))?;
            }
        }
        screen.flush()?;
        if !self.json && effect.state == EffectState::Unknown {
            notice(
                "hint: find out whether it happened, then `oncebox effects settle KEY` with \
                 --done or --not-done",
            );
        }
        Ok(())
    }
}

/// The deliveries that wait for an effect, as far as one page of those that wait for any goes.
async fn held_for(store: &dyn Store, key: &str) -> Result<Vec<DeliveryId>, Failure> {
    let filter = DeliveryFilter {
        state: Some(State::Held),
        reason: Some(Reason::UnknownEffect),
        limit: LIST_PAGE,
        ..DeliveryFilter::default()
    };
    let rows = store.deliveries(&filter).await?;
    let ours = rows.iter().filter(|row| row.waits_for.as_deref() == Some(key));
    Ok(ours.map(|row| row.delivery).collect())
}

fn print(screen: &mut Screen, effect: &Effect, now: Timestamp) -> Result<(), Failure> {
    let mut line = |label: &str, text: &str| screen.line(format!("{label:11} {text}"));
    line("effect", &escape(&effect.key))?;
    line("kind", effect.kind.as_str())?;
    line("state", effect.state.as_str())?;
    line("since", &both(effect.at, now))?;
    line("delivery", &effect.delivery.to_string())?;
    line("route", &escape(&effect.route))?;
    line("attempt", &effect.attempt.to_string())?;
    if effect.unknowns > 0 {
        let times = count(effect.unknowns as usize, "time");
        line(
            "unknowns",
            &format!("begun {times} without an answer: calls that may have happened"),
        )?;
    }
    if let Some(result) = &effect.result {
        line(result_label(effect), &escape(result))?;
    }
    if let Some(Evidence { at, result }) = &effect.evidence {
        let result = result.as_deref().unwrap_or("no result");
        let said = format!("said to be done {}, too late to count", both(*at, now));
        line("evidence", &said)?;
        line("", &format!("  {}", escape(result)))?;
    }
    Ok(())
}

/// What is recorded with a message is the receipt that holds it.
fn result_label(effect: &Effect) -> &'static str {
    if effect.kind == EffectKind::Message { "sent as" } else { "result" }
}

fn print_conflicts(
    screen: &mut Screen,
    effect: &Effect,
    conflicts: &[EffectConflict],
    now: Timestamp,
) -> Result<(), Failure> {
    for conflict in conflicts {
        let EffectConflict { receipt, route, at, differs } = conflict;
        let (route, at) = (escape(route), both(*at, now));
        let differs = if *differs { ", with another payload" } else { "" };
        let found = format!("{receipt} through {route} found it done {at}{differs}");
        screen.line(format!("{:11} {found}", "conflict"))?;
    }
    let more = (effect.conflicts as usize).saturating_sub(conflicts.len());
    if more > 0 {
        screen.line(format!("{:11} and {}", "", count(more, "more delivery")))?;
    }
    Ok(())
}

fn conflict_as_json(conflict: &EffectConflict) -> Value {
    json!({
        "receipt": conflict.receipt.to_string(),
        "route": conflict.route,
        "at": conflict.at.to_string(),
        "differs": conflict.differs,
    })
}
