//! `oncebox receipts`: what was kept.

use std::sync::Arc;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::State;
use oncebox::limits::LIST_PAGE;
use oncebox::lookup::short_ids;
use oncebox::receipt::{Mark, Oddity};
use oncebox::store::{ReceiptFilter, ReceiptSummary, Repeat, Store};
use oncebox_server::capture::UNVERIFIED;
use oncebox_server::line::Colour;
use oncebox_verify::Trust;
use serde_json::{Value, json};

use super::deliveries::view::Routes;
use super::verify::trust;
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output::{Cell, Column, Screen, absolute, age, count, escape, notice, relative};
use crate::when::{When, when};

mod effects;
mod export;
pub(crate) mod history;
mod pretty;
mod send;
pub(crate) mod show;

/// List, show, export or send what was received
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox receipts list --source stripe --since 2h
  oncebox receipts show evt_123
  oncebox receipts export --since 1d > receipts.jsonl")]
pub(crate) struct Receipts {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Show(show::Show),
    Export(export::Export),
    Send(send::Send),
}

impl Receipts {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let routes = Routes::load(&*store, &config).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store, &routes).await,
            Command::Show(show) => show.run(&store, &routes).await,
            Command::Export(export) => export.run(&store, &routes).await,
            Command::Send(send) => send.run(&store).await,
        };
        store.close().await;
        done
    }
}

/// Which receipts are meant.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only of this source; outbox messages only of theirs, outbox/DESTINATION
    #[arg(long, value_name = "NAME")]
    source: Option<String>,

    /// Only of this type; * stands for any text
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,

    /// Only of this event id
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,

    /// Only about this business object
    #[arg(long, value_name = "ID")]
    object: Option<String>,

    /// Only received since then: 2h, 2026-01-02, 2026-01-02T03:04:05Z or Unix seconds
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<When>,

    /// Only received before then
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<When>,

    /// Only those no route took
    #[arg(long)]
    unrouted: bool,

    /// Only odd ones: twins, conflicts, and events of a batch with a value that cannot be kept
    #[arg(long)]
    odd: bool,
}

impl Filter {
    /// The filter of the store. A source nobody has ever heard of is more likely misspelled than
    /// empty.
    async fn resolve(
        &self,
        store: &Arc<dyn Store>,
        now: Timestamp,
    ) -> Result<ReceiptFilter, Failure> {
        if let Some(name) = &self.source {
            context::source_no(&**store, name).await?;
        }
        Ok(ReceiptFilter {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            event_id: self.event_id.clone(),
            object: self.object.clone(),
            since: self.since.map(|when| when.before(now)),
            until: self.until.map(|when| when.before(now)),
            unrouted: self.unrouted,
            odd: self.odd,
            before: None,
            limit: LIST_PAGE,
        })
    }
}

/// Walks over receipts page by page, newest first, so that no list is ever held whole.
struct Pages<'a> {
    store: &'a Arc<dyn Store>,
    routes: &'a Routes,
    filter: ReceiptFilter,
    /// How many may still come; none is no limit.
    left: Option<usize>,
    ended: bool,
}

impl<'a> Pages<'a> {
    fn new(
        store: &'a Arc<dyn Store>,
        routes: &'a Routes,
        filter: ReceiptFilter,
        most: Option<usize>,
    ) -> Self {
        Self { store, routes, filter, left: most, ended: false }
    }

    async fn next(&mut self) -> Result<Option<Vec<ReceiptSummary>>, Failure> {
        let asked = self.left.unwrap_or(LIST_PAGE).min(LIST_PAGE);
        if self.ended || asked == 0 {
            return Ok(None);
        }
        self.filter.limit = asked;
        let mut page = self.store.receipts(&self.filter).await?;
        for summary in &mut page {
            self.routes.show(&mut summary.deliveries);
        }
        let Some(last) = page.last() else { return Ok(None) };
        self.filter.before = Some(last.receipt);
        self.left = self.left.map(|left| left.saturating_sub(page.len()));
        self.ended = page.len() < asked;
        Ok(Some(page))
    }

    /// Whether the limit, and not the end of the store, ended the walk.
    fn may_have_more(&self) -> bool {
        !self.ended && self.left == Some(0)
    }
}

/// List receipts, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox receipts list --type 'invoice.*' --since 1d
  oncebox receipts list --object in_456 --all --json")]
struct List {
    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let now = SystemClock.now();
        let filter = self.filter.resolve(store, now).await?;
        let mut pages = Pages::new(store, routes, filter, self.listing.most());
        let mut screen = Screen::stdout();
        let mut shown = 0;
        while let Some(page) = pages.next().await? {
            shown += page.len();
            if self.listing.json {
                for summary in &page {
                    screen.json(&as_json(summary))?;
                }
            } else {
                print_table(&mut screen, &page, now)?;
            }
            screen.flush()?;
        }
        self.listing.tell(shown, pages.may_have_more(), "receipt");
        if !self.listing.json {
            tell_rejected(&**store, self.filter.source.as_deref(), now).await?;
        }
        Ok(())
    }
}

/// Tells which sources rejected what they were sent last: it is in no list of receipts.
async fn tell_rejected(
    store: &dyn Store,
    only: Option<&str>,
    now: Timestamp,
) -> Result<(), Failure> {
    let sources = store.sources().await?;
    for activity in store.activity().await? {
        let Some(last) = activity.rejection.filter(|_| activity.rejected_in_a_row > 0) else {
            continue;
        };
        let known = sources.iter().find(|(number, _)| *number == activity.source);
        let Some((_, name)) = known.filter(|(_, name)| only.is_none_or(|only| only == name)) else {
            continue;
        };
        let number = usize::try_from(activity.rejected_in_a_row).unwrap_or(usize::MAX);
        let (requests, name) = (count(number, "request"), escape(name));
        let (ago, reason) = (relative(last.at, now), escape(&last.reason));
        notice(format!(
            "note: source {name} rejected {requests}, the last {ago}: {reason}; \
             see `oncebox sources list`"
        ));
    }
    Ok(())
}

const COLUMNS: [Column; 8] = [
    Column::new("receipt"),
    Column::new("age"),
    Column::text("source", 6),
    Column::text("event id", 10),
    Column::text("type", 10),
    Column::text("deliveries", 10),
    Column::text("note", 10),
    Column::extra("object", 8),
];

fn print_table(
    screen: &mut Screen,
    page: &[ReceiptSummary],
    now: Timestamp,
) -> Result<(), Failure> {
    let ids: Vec<_> = page.iter().map(|summary| summary.receipt).collect();
    let rows = page.iter().zip(short_ids(&ids)).map(|(summary, id)| {
        vec![
            id.into(),
            age(summary.received_at, now).into(),
            escape(&summary.source).into(),
            escape(&summary.event_id).into(),
            escape(&summary.event_type).into(),
            deliveries(summary),
            notes_in_words(summary).into(),
            summary.object.as_deref().map(escape).unwrap_or_default().into(),
        ]
    });
    screen.fitted(&COLUMNS, rows)?;
    Ok(())
}

/// The states of deliveries, what needs a person first.
const STATES: [State; 7] = [
    State::Dead,
    State::Held,
    State::Retrying,
    State::Processing,
    State::Received,
    State::Skipped,
    State::Processed,
];

/// Where the deliveries of a receipt stand: the state of the only one, or how many are in which.
fn deliveries(summary: &ReceiptSummary) -> Cell {
    if let [only] = summary.deliveries.as_slice() {
        let reason = only.reason.as_ref().map(|reason| format!(" ({})", escape(reason)));
        return Cell::state(format!("{}{}", escape(&only.state), reason.unwrap_or_default()));
    }
    let count = |state: &State| {
        let of_it = summary.deliveries.iter().filter(|delivery| delivery.state == state.as_str());
        (of_it.count(), *state)
    };
    let counts = STATES.iter().map(count).filter(|(number, _)| *number > 0);
    let counts: Vec<(usize, State)> = counts.collect();
    let Some((_, worst)) = counts.first() else { return "unrouted".into() };
    let colour = Colour::of_outcome(worst.as_str());
    let words = counts.iter().map(|(number, state)| format!("{number} {state}"));
    Cell::coloured(words.collect::<Vec<_>>().join(", "), colour)
}

/// What is odd about a receipt, and how often it was repeated.
fn notes_in_words(summary: &ReceiptSummary) -> String {
    let unverified = (summary.trust == Trust::Unverified).then(|| UNVERIFIED.to_owned());
    let odd = summary.mark.map(|mark| mark.oddity.as_str().to_owned());
    let repeats = summary.repeats.as_ref().map(repeats_in_words).filter(|words| !words.is_empty());
    unverified.into_iter().chain(odd).chain(repeats).collect::<Vec<_>>().join(", ")
}

/// A mark, and the receipt it points at.
pub(super) fn mark_in_words(mark: Mark) -> String {
    let first = mark.first.map(|first| first.to_string()).unwrap_or_default();
    match mark.oddity {
        Oddity::Twin => format!("twin: the signed content of receipt {first} under another id"),
        Oddity::Conflict => format!("conflict: the identity of receipt {first}, other content"),
        Oddity::Defect => "defect: a value of it cannot be kept; its id is its digest".to_owned(),
    }
}

/// Counts of repeats that are not zero.
fn repeats_in_words(repeats: &Repeat) -> String {
    let parts = [
        (repeats.duplicates, "duplicate"),
        (repeats.conflicts, "conflict"),
        (repeats.twins, "twin"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let words: Vec<_> = parts.map(|(number, noun)| count(*number as usize, noun)).collect();
    words.join(", ")
}

/// A receipt in a list; the fields are the words of the documentation and never renamed.
fn as_json(summary: &ReceiptSummary) -> Value {
    let repeats = summary.repeats.as_ref();
    let deliveries = summary.deliveries.iter().map(|delivery| {
        json!({
            "route": delivery.route,
            "state": delivery.state,
            "reason": delivery.reason,
            "attempts": delivery.attempts,
        })
    });
    json!({
        "receipt": summary.receipt.to_string(),
        "source": summary.source,
        "event_id": summary.event_id,
        "event_type": summary.event_type,
        "trust": trust(summary.trust),
        "object_id": summary.object,
        "object_version": summary.version,
        "oddity": summary.mark.map(|mark| mark.oddity.as_str()),
        "first_receipt": summary.mark.and_then(|mark| mark.first).map(|first| first.to_string()),
        "received_at": summary.received_at.to_string(),
        "bytes": summary.bytes,
        "duplicates": repeats.map_or(0, |repeats| repeats.duplicates),
        "conflicts": repeats.map_or(0, |repeats| repeats.conflicts),
        "twins": repeats.map_or(0, |repeats| repeats.twins),
        "deliveries": deliveries.collect::<Vec<_>>(),
    })
}

/// A time for people: when, and how long ago that is.
pub(crate) fn both(time: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", absolute(time), relative(time, now))
}
