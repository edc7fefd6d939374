//! `oncebox routes`: where events go, and how it goes there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Reason, State};
use oncebox::effect::OUTBOX;
use oncebox::limits::LIST_PAGE;
use oncebox::route::Schedule;
use oncebox::store::{BreakerRow, FILLING, Store, Tally};
use oncebox_server::config::{Config, carrier};
use oncebox_server::line::Colour;
use serde_json::{Map, Value, json};

use super::deliveries::no_route;
use super::deliveries::view::Routes as View;
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::operator::{Operator, reason};
use crate::output::{Cell, Column, Screen, age, escape, notice, relative};

/// List, pause or resume routes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox routes list
  oncebox routes pause billing --reason 'the database is being moved'
  oncebox routes resume billing")]
pub(crate) struct Routes {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Pause(Pause),
    Resume(Resume),
}

impl Routes {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store, &config).await,
            Command::Pause(pause) => pause.target.set(&store, &config, true).await,
            Command::Resume(resume) => resume.target.set(&store, &config, false).await,
        };
        store.close().await;
        done
    }
}

/// Claim nothing more from a route; events are still recorded for it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox routes pause billing --reason 'the database is being moved'

Exit codes: 0 paused, 3 not found.")]
struct Pause {
    #[command(flatten)]
    target: Target,
}

/// Let a paused route go on where it stopped
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox routes resume billing

Exit codes: 0 resumed, 3 not found.")]
struct Resume {
    #[command(flatten)]
    target: Target,
}

/// Which route, who and why.
#[derive(Debug, Args)]
struct Target {
    /// The route
    route: String,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

impl Target {
    async fn set(
        &self,
        store: &Arc<dyn Store>,
        config: &Config,
        paused: bool,
    ) -> Result<(), Failure> {
        let act = self.operator.act(self.reason.as_deref());
        if !store.pause_route(&self.route, paused, &act).await? {
            if config.names_route(&self.route) {
                let never = format!("no server has served route `{}` yet", escape(&self.route));
                return Err(Failure::not_found(never));
            }
            let routes = View::load(&**store, config).await?;
            return Err(no_route(&self.route, &routes));
        }
        let done = if paused { "paused" } else { "resumed" };
        notice(format!("{done} {}", escape(&self.route)));
        Ok(())
    }
}

/// List routes, how many of their deliveries are in each state, and how old the oldest is
///
/// Routes that only the store knows are shown as no-route: their open deliveries are held until
/// the configuration names them again. The messages of a destination have a route, too, called
/// outbox/ and its name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox routes list
  oncebox routes list --processed --json")]
struct List {
    /// Count what was processed, too
    #[arg(long)]
    processed: bool,

    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let now = SystemClock.now();
        let view = View::load(&**store, config).await?;
        let tallies = store.tally().await?;
        let carriers: Vec<String> = config.destinations.keys().map(|to| carrier(to)).collect();
        let breakers = store.breakers().await?;
        let all = lines(&view, config, &carriers, &tallies, &breakers);
        let most = self.listing.most().unwrap_or(all.len());
        let shown: Vec<&Line<'_>> = all.iter().take(most).collect();
        let mut screen = Screen::stdout();
        if self.listing.json {
            for line in &shown {
                screen.json(&line.as_json(self.processed))?;
            }
        } else if !shown.is_empty() {
            let reasons = pause_reasons(store, &shown).await?;
            print_table(&mut screen, &shown, &reasons, self.processed, now)?;
            print_filling(&mut screen, &shown)?;
            print_breakers(&mut screen, &shown, now)?;
            print_retries(&mut screen, &shown)?;
        }
        screen.flush()?;
        self.listing.tell(shown.len(), shown.len() < all.len(), "route");
        Ok(())
    }
}

/// Why routes are paused, as far as the latest acts tell.
async fn pause_reasons(
    store: &Arc<dyn Store>,
    lines: &[&Line<'_>],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut reasons = BTreeMap::new();
    if lines.iter().all(|line| line.paused_at.is_none()) {
        return Ok(reasons);
    }
    let acts = store.audit(None, LIST_PAGE).await?;
    // They come newest first.
    for act in acts.into_iter().rev() {
        match (act.act.as_str(), act.why) {
            ("route.pause", Some(why)) => drop(reasons.insert(act.subject, why)),
            ("route.resume", _) => drop(reasons.remove(&act.subject)),
            _ => {}
        }
    }
    Ok(reasons)
}

/// One route of the list.
struct Line<'a> {
    name: &'a str,
    /// Whom events go to, in a word or by address; none if the configuration does not say.
    consumer: Option<&'a str>,
    paused_at: Option<Timestamp>,
    /// Whether its open deliveries are being given their objects.
    filling: bool,
    counts: BTreeMap<State, u64>,
    /// Why those that are held are.
    held: BTreeMap<&'static str, u64>,
    /// When the oldest that is not finished was received.
    oldest: Option<Timestamp>,
    /// Its breakers that are not closed, of each worker that has one.
    breakers: Vec<&'a BreakerRow>,
    /// When what fails is tried again, where that is known.
    schedule: Option<Schedule>,
}

/// When what a configured route or destination fails to deliver is tried again.
fn schedule(config: &Config, name: &str) -> Option<Schedule> {
    let rules = match name.strip_prefix(OUTBOX) {
        Some(destination) => config.destinations.get(destination)?.rules(),
        None => config.routes.get(name)?.rules(),
    };
    Some(rules.schedule())
}

/// Whom what a route takes goes to.
fn consumer<'a>(config: &'a Config, name: &str) -> Option<&'a str> {
    if let Some(destination) = name.strip_prefix(OUTBOX) {
        return config.destinations.get(destination).map(|to| to.url.as_str());
    }
    let route = config.routes.get(name)?;
    Some(route.push.as_deref().unwrap_or("pull"))
}

/// Routes of the configuration and of the store, by name. Those of destinations are among them.
fn lines<'a>(
    view: &'a View,
    config: &'a Config,
    carriers: &'a [String],
    tallies: &[Tally],
    breakers: &'a [BreakerRow],
) -> Vec<Line<'a>> {
    let mut lines: BTreeMap<&str, Line<'a>> = BTreeMap::new();
    let empty = |name: &'a str| Line {
        name,
        consumer: consumer(config, name),
        paused_at: None,
        filling: false,
        counts: BTreeMap::new(),
        held: BTreeMap::new(),
        oldest: None,
        breakers: Vec::new(),
        schedule: schedule(config, name),
    };
    for name in config.routes.keys().chain(carriers) {
        lines.insert(name, empty(name));
    }
    for route in &view.views {
        let line = lines.entry(&route.name).or_insert_with(|| empty(&route.name));
        line.paused_at = route.paused_at;
        line.filling = route.filling;
        line.schedule.get_or_insert_with(|| route.rules.schedule());
        line.breakers.extend(breakers.iter().filter(|row| row.route == route.route));
        for tally in tallies.iter().filter(|tally| tally.route == route.route) {
            line.add(view, tally);
        }
    }
    lines.into_values().collect()
}

impl Line<'_> {
    fn add(&mut self, view: &View, tally: &Tally) {
        let shown = view.shown(self.name, tally.state, tally.reason);
        *self.counts.entry(shown.state).or_default() += tally.count;
        if let (State::Held, Some(reason)) = (shown.state, shown.reason) {
            *self.held.entry(reason.as_str()).or_default() += tally.count;
        }
        if !tally.state.is_finished() {
            self.oldest = self.oldest.into_iter().chain(tally.oldest).min();
        }
    }

    fn count(&self, state: State) -> u64 {
        self.counts.get(&state).copied().unwrap_or(0)
    }

    fn consumer(&self) -> &str {
        self.consumer.unwrap_or(Reason::NoRoute.as_str())
    }

    fn as_json(&self, processed: bool) -> Value {
        let counts = states(processed).map(|state| (state.to_string(), self.count(state).into()));
        let counts: Map<String, Value> = counts.collect();
        json!({
            "route": self.name,
            "consumer": self.consumer(),
            "configured": self.consumer.is_some(),
            "destination": self.name.strip_prefix(OUTBOX),
            "paused_at": self.paused_at.map(|time| time.to_string()),
            "filling": self.filling,
            "deliveries": counts,
            "held": self.held,
            "oldest_received_at": self.oldest.map(|time| time.to_string()),
            "breakers": self.breakers.iter().map(|row| breaker_json(row)).collect::<Vec<_>>(),
            "retries": self.schedule.as_ref().map(schedule_json),
        })
    }
}

fn breaker_json(row: &BreakerRow) -> Value {
    json!({
        "state": row.state,
        "reason": row.reason,
        "next_probe_at": row.next_probe_at.map(|time| time.to_string()),
        "worker": row.worker,
        "told_at": row.told_at.to_string(),
    })
}

fn schedule_json(schedule: &Schedule) -> Value {
    let seconds = |pause: &Duration| pause.as_secs_f64();
    json!({
        "attempts": schedule.attempts,
        "pauses_s": schedule.pauses.iter().map(seconds).collect::<Vec<_>>(),
        "lasts_about_s": schedule.about.as_secs(),
        "words": schedule.to_string(),
    })
}

/// The states that are counted.
fn states(processed: bool) -> impl Iterator<Item = State> {
    State::ALL.into_iter().filter(move |state| processed || *state != State::Processed)
}

fn print_table(
    screen: &mut Screen,
    lines: &[&Line<'_>],
    reasons: &BTreeMap<String, String>,
    processed: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    let mut columns =
        vec![Column::text("route", 8), Column::text("consumer", 8), Column::new("paused")];
    columns.extend(states(processed).map(|state| Column::right(state.as_str())));
    columns.extend([Column::right("oldest"), Column::text("why paused", 12)]);
    let rows = lines.iter().map(|line| {
        let mut cells: Vec<Cell> = vec![escape(line.name).into(), escape(line.consumer()).into()];
        cells.push(line.paused_at.map(|time| relative(time, now)).unwrap_or_default().into());
        // A count of zero is left blank.
        cells.extend(states(processed).map(|state| match line.count(state) {
            0 => Cell::from(""),
            number => Cell::coloured(number.to_string(), Colour::of_outcome(state.as_str())),
        }));
        cells.push(line.oldest.map(|time| age(time, now)).unwrap_or_default().into());
        let reason = line.paused_at.and_then(|_| reasons.get(line.name));
        cells.push(reason.map(|reason| escape(reason)).unwrap_or_default().into());
        cells
    });
    screen.fitted(&columns, rows)?;
    Ok(())
}

/// Routes that give nothing yet, since they have only just come to guard objects.
fn print_filling(screen: &mut Screen, lines: &[&Line<'_>]) -> Result<(), Failure> {
    for line in lines.iter().filter(|line| line.filling) {
        screen.paragraph("", &format!("{}: {FILLING}", escape(line.name)))?;
    }
    Ok(())
}

/// What is wrong with destinations, and when they are tried again.
fn print_breakers(screen: &mut Screen, lines: &[&Line<'_>], now: Timestamp) -> Result<(), Failure> {
    for line in lines {
        for row in &line.breakers {
            let probe = row.next_probe_at.map(|time| format!("; next probe {}", when(time, now)));
            let (name, reason) = (escape(line.name), escape(&row.reason));
            let (state, worker) = (escape(&row.state), escape(&row.worker));
            let probe = probe.unwrap_or_default();
            let told = format!("{name}: breaker {state} on {worker}: {reason}{probe}");
            screen.paragraph("", &told)?;
        }
    }
    Ok(())
}

fn when(time: Timestamp, now: Timestamp) -> String {
    if time <= now { "now".to_owned() } else { relative(time, now) }
}

/// When what fails is tried again; routes that retry alike share a line.
fn print_retries(screen: &mut Screen, lines: &[&Line<'_>]) -> Result<(), Failure> {
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let Some(schedule) = &line.schedule else { continue };
        alike.entry(schedule.to_string()).or_default().push(escape(line.name).into_owned());
    }
    for (schedule, names) in alike {
        let names = names.join(", ");
        let verb = if names.contains(", ") { "retry" } else { "retries" };
        screen.paragraph("", &format!("{names} {verb} {schedule}"))?;
    }
    Ok(())
}
