//! `oncebox outbox`: messages that handlers wrote, on their way to their destinations.

use std::sync::Arc;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Reason, State};
use oncebox::effect::{Effect, EffectKey, OUTBOX};
use oncebox::receipt::ReceiptId;
use oncebox::store::{DeliveryFilter, DeliveryRow, ReceiptFilter, RouteView, Store};
use oncebox_server::config::carrier;
use serde_json::{Value, json};

use super::deliveries::due;
use super::deliveries::view::{Routes, Shown};
use super::deliveries::walk::Walk;
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::ids::{self, short_deliveries};
use crate::listing::Listing;
use crate::output::{Cell, Column, Screen, age, escape, escape_note};
use crate::when::{When, when};

mod replay;
mod show;

pub(crate) use show::cause;

/// List, show or replay outbox messages
///
/// A message is written by a handler together with its effects, and pushed to its destination
/// afterwards, under its key. A dead one is given up with `oncebox dead discard`, a destination is
/// paused with `oncebox routes pause outbox/NAME`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox outbox list --destination mailer --state dead
  oncebox outbox show mailer receipt-email:in_456
  oncebox outbox replay mailer --state dead --since 1d --reason 'the mailer is back'")]
pub(crate) struct Outbox {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Show(show::Show),
    Replay(replay::Replay),
}

impl Outbox {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let routes = Routes::load(&*store, &config).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store, &routes).await,
            Command::Show(show) => show.run(&store, &routes).await,
            Command::Replay(replay) => replay.run(&config, &store, &routes).await,
        };
        store.close().await;
        done
    }
}

/// List messages, newest first
///
/// What waits for a paused destination, or for one that the configuration does not name, is shown
/// as held.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox outbox list --destination mailer
  oncebox outbox list --state held --group cus_1
  oncebox outbox list --key receipt-email: --all --json")]
struct List {
    /// Only to this destination
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,

    /// Only in this state
    #[arg(long, value_name = "STATE", value_parser = states())]
    state: Option<String>,

    /// Only keys that begin so
    #[arg(long, value_name = "PREFIX")]
    key: Option<String>,

    /// Only of this group
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// Only written since then: 2h, 2026-01-02, 2026-01-02T03:04:05Z or Unix seconds
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<When>,

    /// Only written before then
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<When>,

    #[command(flatten)]
    listing: Listing,
}

/// The words for states; for clap.
fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(State::ALL.map(State::as_str))
}

impl List {
    async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let now = SystemClock.now();
        let carriers: Vec<&RouteView> = match &self.destination {
            Some(name) => vec![find(routes, name)?],
            None => carriers(routes).collect(),
        };
        let filters = carriers.into_iter().map(|view| DeliveryFilter {
            route: Some(view.name.clone()),
            state: self.state.as_deref().and_then(State::of),
            event_id_prefix: self.key.clone(),
            object: self.group.clone(),
            since: self.since.map(|when| when.before(now)),
            until: self.until.map(|when| when.before(now)),
            ..DeliveryFilter::default()
        });
        let mut walk = Walk::over(&**store, routes, filters, self.listing.most());
        let mut screen = Screen::stdout();
        let mut shown = 0;
        while let Some(page) = walk.next().await? {
            shown += page.len();
            if self.listing.json {
                for row in &page {
                    screen.json(&as_json(row, routes.shown_of(row)))?;
                }
            } else {
                print_table(&mut screen, routes, &page, now)?;
            }
            screen.flush()?;
        }
        self.listing.tell(shown, walk.may_have_more(), "message");
        Ok(())
    }
}

const COLUMNS: [Column; 9] = [
    Column::new("delivery"),
    Column::new("age"),
    Column::text("to", 8),
    Column::text("key", 16),
    Column::text("state", 12),
    Column::right("tries"),
    Column::new("next"),
    Column::text("group", 6),
    Column::text("detail", 12),
];

fn print_table(
    screen: &mut Screen,
    routes: &Routes,
    page: &[DeliveryRow],
    now: Timestamp,
) -> Result<(), Failure> {
    let deliveries: Vec<_> = page.iter().map(|row| row.delivery).collect();
    let rows = page.iter().zip(short_deliveries(&deliveries)).map(|(row, delivery)| {
        let shown = routes.shown_of(row);
        let detail = row.detail.as_deref().or(row.summary.as_deref());
        vec![
            delivery.into(),
            age(row.received_at, now).into(),
            escape(destination(&row.route)).into(),
            escape(&row.event_id).into(),
            Cell::state(shown.to_string()),
            row.counts.attempts.to_string().into(),
            due(row, shown, now).unwrap_or_default().into(),
            group(row).map(|group| escape(&group).into_owned()).unwrap_or_default().into(),
            detail.map(escape_note).unwrap_or_default().into(),
        ]
    });
    screen.fitted(&COLUMNS, rows)?;
    Ok(())
}

/// The group of a message and its number in it.
fn group(row: &DeliveryRow) -> Option<String> {
    let group = row.object.as_deref()?;
    Some(row.version.map_or_else(|| group.to_owned(), |number| format!("{group} #{number}")))
}

/// A message in a list; the fields are the words of the documentation and never renamed.
fn as_json(row: &DeliveryRow, shown: Shown) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    json!({
        "message": row.delivery.receipt.to_string(),
        "destination": destination(&row.route),
        "key": row.event_id,
        "group": row.object,
        "sequence": row.version,
        "written_at": row.received_at.to_string(),
        "delivery": row.delivery.to_string(),
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
    })
}

/// The name of a destination, from that of the route its messages go by.
fn destination(route: &str) -> &str {
    route.strip_prefix(OUTBOX).unwrap_or(route)
}

/// The routes that messages go by.
fn carriers(routes: &Routes) -> impl Iterator<Item = &RouteView> {
    routes.views.iter().filter(|view| view.name.starts_with(OUTBOX))
}

/// The route by which messages go to a destination that the store knows.
fn find<'a>(routes: &'a Routes, name: &str) -> Result<&'a RouteView, Failure> {
    let found = carriers(routes).find(|view| view.name == carrier(name));
    found.ok_or_else(|| {
        let failure = Failure::not_found(format!("there is no destination `{}`", escape(name)));
        let known: Vec<&str> = carriers(routes).map(|view| destination(&view.name)).collect();
        if known.is_empty() {
            return failure.hint(
                "the store knows none yet; add [destinations.NAME], and start or reload the server",
            );
        }
        failure.hint(format!("the destinations are {}", escape(&known.join(", "))))
    })
}

/// A message that somebody names, as far as the store remembers it.
pub(crate) struct Named {
    /// The receipt that holds it, be it gone.
    pub(crate) receipt: ReceiptId,
    /// What the ledger says of it; nothing once that was forgotten.
    pub(crate) effect: Option<Effect>,
}

impl Named {
    /// Finds a message of a destination by its key.
    pub(crate) async fn by_key(
        store: &dyn Store,
        carrier: &RouteView,
        key: &str,
    ) -> Result<Option<Self>, Failure> {
        if let Some(effect) = store.effect(&format!("{}/{key}", carrier.born_as)).await? {
            let receipt = effect.result.as_deref().map(|result| result.trim_matches('"').parse());
            if let Some(Ok(receipt)) = receipt {
                return Ok(Some(Self { receipt, effect: Some(effect) }));
            }
        }
        // The ledger may have been told to forget it.
        let filter = ReceiptFilter {
            source: Some(carrier.name.clone()),
            event_id: Some(key.to_owned()),
            limit: 1,
            ..ReceiptFilter::default()
        };
        let found = store.receipts(&filter).await?;
        Ok(found.first().map(|found| Self { receipt: found.receipt, effect: None }))
    }

    /// Finds a message by its key or, where no key is like that, by its id or its delivery's.
    async fn find(
        store: &dyn Store,
        carrier: &RouteView,
        text: &str,
    ) -> Result<Option<Self>, Failure> {
        if text.parse::<EffectKey>().is_ok()
            && let Some(found) = Self::by_key(store, carrier, text).await?
        {
            return Ok(Some(found));
        }
        let found = ids::found(store, text, Some(&carrier.name)).await?;
        let Some((named, _)) = found else { return Ok(None) };
        let id = named.receipt;
        let Some(found) = store.receipt(id).await? else { return Ok(None) };
        let named = Self::by_key(store, carrier, &found.summary.event_id).await?;
        let same = named.filter(|named| named.receipt == id);
        Ok(Some(same.unwrap_or(Self { receipt: id, effect: None })))
    }
}

/// What to say when there is no such message.
fn no_message(carrier: &RouteView, text: &str) -> Failure {
    let (name, text) = (escape(destination(&carrier.name)), escape(text));
    Failure::not_found(format!("`{name}` has no message `{text}`"))
        .hint(format!("`oncebox outbox list --destination {name}` shows those there are"))
}

/// What to say when only the key of a message is left.
fn expired(named: &Named, text: &str) -> Failure {
    let (id, text) = (named.receipt, escape(text));
    Failure::not_found(format!("message `{text}` was written as {id}, but its payload has expired"))
        .hint("only its key is remembered, so that it is not sent again")
}
