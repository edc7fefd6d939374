//! `oncebox effects`: what happened once, and what nobody knows of.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::effect::{Effect, EffectKind, EffectState};
use oncebox::limits::LIST_PAGE;
use oncebox::store::{EffectFilter, Store, StoreError};
use oncebox_server::api::effects::json::EffectJson;
use oncebox_server::line::Colour;

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::ids::{self, short_deliveries};
use crate::listing::Listing;
use crate::output::{Cell, Column, Screen, age, escape};

mod forget;
mod settle;
mod show;

/// List, show, settle or forget effects: what happens once, each under its key
///
/// An effect that was begun and never completed is unknown: whether it happened, only the other
/// end can tell. A delivery that asks waits until somebody has found out and settled it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox effects list --state unknown
  oncebox effects show charge:in_456
  oncebox effects settle charge:in_456 --done --result '{\"charge\":\"ch_1\"}'
  oncebox effects settle charge:in_456 --not-done --reason 'the bank has no such charge'")]
pub(crate) struct Effects {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Show(show::Show),
    Settle(settle::Settle),
    Forget(forget::Forget),
}

impl Effects {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let store = context::store(global).await?;
        let done = match self.command {
            Command::List(list) => list.run(&*store).await,
            Command::Show(show) => show.run(&*store).await,
            Command::Settle(settle) => settle.run(&*store).await,
            Command::Forget(forget) => forget.run(&*store).await,
        };
        store.close().await;
        done
    }
}

/// List effects, in the order of their keys
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox effects list --state unknown
  oncebox effects list --prefix receipt-email: --all --json
  oncebox effects list --receipt evt_123")]
struct List {
    /// Only in this state
    #[arg(long, value_name = "STATE", value_parser = states())]
    state: Option<String>,

    /// Only of this kind
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    kind: Option<String>,

    /// Only keys that begin so
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Only those that deliveries of this receipt did, or were at last
    #[arg(long, value_name = "RECEIPT")]
    receipt: Option<String>,

    #[command(flatten)]
    listing: Listing,
}

/// The words for states; for clap.
fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(EffectState::ALL.map(EffectState::as_str))
}

/// What happened is good, what is not known needs a person.
fn colour(state: EffectState) -> Option<Colour> {
    match state {
        EffectState::Unknown => Some(Colour::BAD),
        EffectState::Started => Some(Colour::WAITS),
        _ => Some(Colour::GOOD),
    }
}

/// The words for kinds; for clap.
fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(EffectKind::ALL.map(EffectKind::as_str))
}

impl List {
    async fn run(self, store: &dyn Store) -> Result<(), Failure> {
        let receipt = match &self.receipt {
            Some(id) => Some(ids::named(store, id, None).await?.0.receipt),
            None => None,
        };
        let filter = EffectFilter {
            state: self.state.as_deref().and_then(EffectState::of),
            kind: self.kind.as_deref().and_then(EffectKind::of),
            prefix: self.prefix,
            receipt,
            ..EffectFilter::default()
        };
        let now = SystemClock.now();
        let mut pages = Pages::new(store, filter, self.listing.most());
        let mut screen = Screen::stdout();
        let mut shown = 0;
        while let Some(page) = pages.next().await? {
            shown += page.len();
            if self.listing.json {
                for effect in &page {
                    screen.json(&EffectJson::from(effect))?;
                }
            } else {
                print_table(&mut screen, &page, now)?;
            }
            screen.flush()?;
        }
        self.listing.tell(shown, pages.may_have_more(), "effect");
        Ok(())
    }
}

fn print_table(screen: &mut Screen, page: &[Effect], now: Timestamp) -> Result<(), Failure> {
    const COLUMNS: [Column; 9] = [
        Column::text("key", 24),
        Column::text("state", 9),
        Column::new("age"),
        Column::text("route", 8),
        Column::new("delivery"),
        Column::new("kind"),
        Column::right("attempt"),
        Column::right("unknowns"),
        Column::right("conflicts"),
    ];
    let deliveries: Vec<_> = page.iter().map(|effect| effect.delivery).collect();
    let short = short_deliveries(&deliveries);
    // A count of nothing is nothing to look at.
    let counted = |number: u32| if number == 0 { String::new() } else { number.to_string() };
    let rows = page.iter().zip(short).map(|(effect, delivery)| {
        vec![
            escape(&effect.key).into(),
            Cell::coloured(effect.state.to_string(), colour(effect.state)),
            age(effect.at, now).into(),
            escape(&effect.route).into(),
            delivery.into(),
            effect.kind.as_str().into(),
            effect.attempt.to_string().into(),
            counted(effect.unknowns).into(),
            counted(effect.conflicts).into(),
        ]
    });
    screen.fitted(&COLUMNS, rows)?;
    Ok(())
}

/// Walks over effects page by page, so that no list is ever held whole.
pub(super) struct Pages<'a> {
    store: &'a dyn Store,
    filter: EffectFilter,
    /// How many may still come; none is no limit.
    left: Option<usize>,
    ended: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(store: &'a dyn Store, filter: EffectFilter, most: Option<usize>) -> Self {
        Self { store, filter, left: most, ended: false }
    }

    /// The next of them; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Effect>>, StoreError> {
        let asked = self.left.unwrap_or(LIST_PAGE).min(LIST_PAGE);
        if self.ended || asked == 0 {
            return Ok(None);
        }
        self.filter.limit = asked;
        let page = self.store.effects(&self.filter).await?;
        self.ended = page.len() < asked;
        let Some(last) = page.last() else { return Ok(None) };
        self.filter.after = Some(last.key.clone());
        self.left = self.left.map(|left| left.saturating_sub(page.len()));
        Ok(Some(page))
    }

    /// Whether the limit, and not the end of the store, ended the walk.
    pub(super) fn may_have_more(&self) -> bool {
        !self.ended && self.left == Some(0)
    }
}

/// The effect of that key.
async fn find(store: &dyn Store, key: &str) -> Result<Effect, Failure> {
    store.effect(key).await?.ok_or_else(|| no_effect(key))
}

/// What to say when there is no such effect.
fn no_effect(key: &str) -> Failure {
    Failure::not_found(format!("there is no effect `{}`", escape(key))).hint(
        "`oncebox effects list --prefix TEXT` shows those there are; a step's key is \
         RECEIPT/ROUTE/STEP, a message's outbox/DESTINATION/KEY",
    )
}
