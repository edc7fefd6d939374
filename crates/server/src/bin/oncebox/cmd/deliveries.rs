//! `oncebox deliveries`: where everything that was received stands on its way.

use std::sync::Arc;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Reason, State};
use oncebox::store::{DeliveryFilter, DeliveryRow, Store};
use serde_json::{Value, json};

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output::{Screen, escape};
use crate::when::{When, when};

mod show;
mod table;
pub(crate) mod view;
pub(crate) mod walk;

pub(crate) use table::{Shape, due, waits_for};
use view::{Routes, Shown};
use walk::Walk;

/// List or show deliveries: what is to be done, and what was
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox deliveries list --route billing --state retrying
  oncebox deliveries show evt_123
  oncebox deliveries list --state skipped --reason stale --since 1d --json")]
pub(crate) struct Deliveries {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Show(show::Show),
}

impl Deliveries {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let routes = Routes::load(&*store, &config).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store, &routes).await,
            Command::Show(show) => show.run(&store, &routes).await,
        };
        store.close().await;
        done
    }
}

/// List deliveries, newest receipt first
///
/// What waits on a paused route, or on one that the configuration does not name, is shown as held.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox deliveries list --state held
  oncebox deliveries list --type 'invoice.*' --since 2h --all --json")]
struct List {
    /// Only in this state
    #[arg(long, value_name = "STATE", value_parser = states())]
    state: Option<String>,

    /// Only those held or skipped for this reason
    #[arg(long, value_name = "REASON", value_parser = reasons())]
    reason: Option<String>,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let filter = DeliveryFilter {
            state: self.state.as_deref().and_then(State::of),
            reason: self.reason.as_deref().and_then(Reason::of),
            ..self.which.resolve(store, routes, SystemClock.now()).await?
        };
        print_list(store, routes, filter, &self.listing, Shape::All).await
    }
}

/// The words for states; for clap.
fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(State::ALL.map(State::as_str))
}

/// The words for reasons; for clap.
fn reasons() -> PossibleValuesParser {
    PossibleValuesParser::new(Reason::ALL.map(Reason::as_str))
}

/// Which deliveries are meant, whatever their state.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Only of this route
    #[arg(long, value_name = "NAME")]
    route: Option<String>,

    /// Only of this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,

    /// Only of this event type; * stands for any text
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,

    /// Only received since then: 2h, 2026-01-02, 2026-01-02T03:04:05Z or Unix seconds
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<When>,

    /// Only received before then
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<When>,
}

impl Which {
    /// The filter of the store. A route or source nobody has ever heard of is more likely
    /// misspelled than empty.
    pub(crate) async fn resolve(
        &self,
        store: &Arc<dyn Store>,
        routes: &Routes,
        now: Timestamp,
    ) -> Result<DeliveryFilter, Failure> {
        if let Some(name) = self.route.as_deref().filter(|name| !routes.has(name)) {
            return Err(no_route(name, routes));
        }
        if let Some(name) = &self.source {
            context::source_no(&**store, name).await?;
        }
        Ok(DeliveryFilter {
            route: self.route.clone(),
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            since: self.since.map(|when| when.before(now)),
            until: self.until.map(|when| when.before(now)),
            ..DeliveryFilter::default()
        })
    }
}

/// What to say when the store knows no such route.
pub(crate) fn no_route(name: &str, routes: &Routes) -> Failure {
    let failure = Failure::not_found(format!("there is no route `{}`", escape(name)));
    let known: Vec<&str> = routes.views.iter().map(|view| view.name.as_str()).collect();
    if known.is_empty() {
        return failure.hint("the store knows no routes yet; a server registers those it serves");
    }
    failure.hint(format!("the routes are {}", escape(&known.join(", "))))
}

/// Prints the deliveries that a filter means; its state and reason are those that are shown.
pub(crate) async fn print_list(
    store: &Arc<dyn Store>,
    routes: &Routes,
    filter: DeliveryFilter,
    listing: &Listing,
    shape: Shape,
) -> Result<(), Failure> {
    let now = SystemClock.now();
    let mut walk = Walk::new(&**store, routes, filter, listing.most());
    let mut screen = Screen::stdout();
    let mut shown = 0;
    while let Some(page) = walk.next().await? {
        shown += page.len();
        if listing.json {
            for row in &page {
                screen.json(&as_json(row, routes.shown_of(row)))?;
            }
        } else {
            table::print(&mut screen, routes, &page, shape, now)?;
        }
        screen.flush()?;
    }
    listing.tell(shown, walk.may_have_more(), "delivery");
    Ok(())
}

/// A delivery in a list; the fields are the words of the documentation and never renamed.
pub(crate) fn as_json(row: &DeliveryRow, shown: Shown) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    json!({
        "delivery": row.delivery.to_string(),
        "receipt": row.delivery.receipt.to_string(),
        "route": row.route,
        "source": row.source,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "object_id": row.object,
        "object_version": row.version,
        "received_at": row.received_at.to_string(),
        "state": shown.state.as_str(),
        "reason": shown.reason.map(Reason::as_str),
        "attempts": row.counts.attempts,
        "failures": row.counts.failures,
        "crashes": row.counts.crashes,
        "snoozes": row.counts.snoozes,
        "replays": row.replays,
        "due_at": time(row.due_at),
        "lease_until": time(row.lease_until),
        "worker": row.worker,
        "finished_at": time(row.finished_at),
        "detail": row.detail,
        "summary": row.summary,
        "first": row.first.map(|first| first.to_string()),
        "waits_for": row.waits_for,
        "behind": row.behind.as_ref().map(|behind| json!({
            "receipt": behind.receipt.to_string(),
            "event_id": behind.event_id,
            "state": behind.state.as_str(),
        })),
        "oddity": row.mark.map(|mark| mark.oddity.as_str()),
        "first_receipt": row.mark.and_then(|mark| mark.first).map(|first| first.to_string()),
    })
}
