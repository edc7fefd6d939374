//! `oncebox replays`: the jobs that replays are.

use std::sync::Arc;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::State;
use oncebox::limits::REPLAY_RECEIPTS;
use oncebox::lookup::short_ids;
use oncebox::receipt::{ReceiptId, RouteNo};
use oncebox::replay::{Phase, Replay, ReplayFilter};
use oncebox::store::{RouteView, Store};
use serde_json::{Value, json};

use super::replay::drive::drive;
use super::replay::outlook::Outlook;
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::ids;
use crate::listing::Listing;
use crate::operator::{Operator, reason};
use crate::output::{Cell, Column, Screen, absolute, age, count, escape, notice, relative};

/// List, show, resume or cancel replays
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox replays list
  oncebox replays show 0199c2f0-7e4a-7c3b-9d53-0242ac120002
  oncebox replays cancel 0199c2f0-7e4a-7c3b-9d53-0242ac120002 --reason 'too fast'")]
pub(crate) struct Replays {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Show(Show),
    Resume(Resume),
    Cancel(Cancel),
}

impl Replays {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let store = context::store(global).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store).await,
            Command::Show(show) => show.run(&store).await,
            Command::Resume(resume) => resume.run(&store).await,
            Command::Cancel(cancel) => cancel.run(&store).await,
        };
        store.close().await;
        done
    }
}

/// List replays, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox replays list
  oncebox replays list --all --json")]
struct List {
    #[command(flatten)]
    listing: Listing,
}

/// `--all` is all that anybody will ever look at.
const ALL: usize = 100_000;

impl List {
    async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let most = self.listing.most().unwrap_or(ALL);
        let jobs = store.replays(most).await?;
        let routes = store.routes().await?;
        let now = SystemClock.now();
        let mut screen = Screen::stdout();
        if self.listing.json {
            for job in &jobs {
                screen.json(&as_json(job, &routes))?;
            }
        } else if !jobs.is_empty() {
            screen.fitted(&COLUMNS, rows(&jobs, &routes, now))?;
        }
        screen.flush()?;
        self.listing.tell(jobs.len(), jobs.len() == most, "replay");
        Ok(())
    }
}

/// The receipts a list names; a replay may be about a thousand.
const RECEIPTS_SHOWN: usize = 2;

const COLUMNS: [Column; 8] = [
    Column::new("replay"),
    Column::new("age"),
    Column::new("phase"),
    Column::right("opened"),
    Column::right("of"),
    Column::text("about", 20),
    Column::text("by", 8),
    Column::right("passed"),
];

fn rows(jobs: &[Replay], routes: &[RouteView], now: Timestamp) -> Vec<Vec<Cell>> {
    let ids: Vec<ReceiptId> = jobs.iter().map(|job| job.id.0.into()).collect();
    let row = |(job, id): (&Replay, String)| {
        vec![
            id.into(),
            age(job.created_at, now).into(),
            job.phase.as_str().into(),
            job.opened.to_string().into(),
            job.planned.to_string().into(),
            about(job, routes, RECEIPTS_SHOWN).into(),
            escape(&job.who).into(),
            job.passed.to_string().into(),
        ]
    };
    jobs.iter().zip(short_ids(&ids)).map(row).collect()
}

/// Show one replay: what it is about, and how far it is
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox replays show 0199c2f0-7e4a-7c3b-9d53-0242ac120002

Exit codes: 0 shown, 3 not found.")]
struct Show {
    /// The replay
    #[arg(value_name = "REPLAY")]
    id: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Show {
    async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let job = find(store, &self.id).await?;
        let routes = store.routes().await?;
        let mut screen = Screen::stdout();
        if self.json {
            screen.json(&as_json(&job, &routes))?;
        } else {
            print(&mut screen, &job, &routes, SystemClock.now())?;
        }
        screen.flush()?;
        Ok(())
    }
}

/// Go on with a replay that nobody drives
///
/// A running server does so by itself. A replay whose command has just ended can be taken once
/// its lease, of half a minute, has run out; this waits for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox replays resume 0199c2f0-7e4a-7c3b-9d53-0242ac120002

Exit codes: 0 through, 1 cancelled or interrupted, 3 not found.")]
struct Resume {
    /// The replay
    #[arg(value_name = "REPLAY")]
    id: String,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    operator: Operator,
}

impl Resume {
    async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let job = find(store, &self.id).await?;
        match job.phase {
            Phase::Running => {
                let act = self.operator.act(self.reason.as_deref());
                store.note_act(&act, "replay.resume", &job.id.to_string()).await?;
                drive(store, job, &Outlook::default(), self.json).await
            }
            Phase::Done => {
                notice(format!("replay {} is through", job.id));
                Ok(())
            }
            Phase::Cancelled => Err(Failure::failed(format!("replay {} was cancelled", job.id))
                .hint("make a new one with `oncebox replay`")),
        }
    }
}

/// Cancel a replay: what it has opened goes on, the rest is left
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox replays cancel 0199c2f0-7e4a-7c3b-9d53-0242ac120002 --reason 'too fast'

Exit codes: 0 cancelled, 1 it was over already, 3 not found.")]
struct Cancel {
    /// The replay
    #[arg(value_name = "REPLAY")]
    id: String,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

impl Cancel {
    async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let act = self.operator.act(self.reason.as_deref());
        let id = ids::replay(&**store, &self.id).await?;
        let cancelled = store.cancel_replay(id, &act).await?;
        let job = find(store, &id.to_string()).await?;
        if !cancelled {
            let phase = job.phase.as_str();
            return Err(Failure::failed(format!("replay {} is {phase} already", job.id)));
        }
        notice(format!(
            "cancelled {} after {} of {}",
            job.id,
            job.opened + job.passed,
            job.planned
        ));
        Ok(())
    }
}

async fn find(store: &Arc<dyn Store>, text: &str) -> Result<Replay, Failure> {
    let id = ids::replay(&**store, text).await?;
    store.replay(id).await?.ok_or_else(|| {
        Failure::not_found(format!("there is no replay {id}"))
            .hint("`oncebox replays list` shows those there are")
    })
}

fn print(
    screen: &mut Screen,
    job: &Replay,
    routes: &[RouteView],
    now: Timestamp,
) -> Result<(), Failure> {
    let made = format!("{} ({})", absolute(job.created_at), relative(job.created_at, now));
    let mut line = |label: &str, text: &str| screen.line(format!("{label:11} {text}"));
    line("replay", &job.id.to_string())?;
    line("phase", job.phase.as_str())?;
    line("made", &made)?;
    line("by", &escape(&job.who))?;
    if let Some(why) = &job.why {
        line("why", &escape(why))?;
    }
    line("about", &about(job, routes, REPLAY_RECEIPTS))?;
    if let Some(rate) = job.rate {
        line("rate", &format!("{rate} deliveries a second"))?;
    }
    line("opened", &job.opened.to_string())?;
    line("passed", &format!("{}, left as they were", job.passed))?;
    line("of", &format!("{} when it was planned", job.planned))?;
    Ok(())
}

/// What a replay is about, in the words of its command, with so many of its receipts.
fn about(job: &Replay, routes: &[RouteView], most: usize) -> String {
    let filter = &job.filter;
    let mut words: Vec<String> =
        filter.receipts.iter().take(most).map(ReceiptId::to_string).collect();
    match filter.receipts.len().saturating_sub(most) {
        0 => {}
        more => words.push(format!("and {}", count(more, "more receipt"))),
    }
    let mut flag = |name: &str, value: &str| words.push(format!("--{name} {}", escape(value)));
    for name in names(job, routes) {
        flag("route", &name);
    }
    let times = [("since", filter.since), ("until", filter.until)];
    let times = times.map(|(name, time)| (name, time.map(|time| time.to_string())));
    let state = state_word(filter);
    let texts = [
        ("source", filter.source.as_deref()),
        ("type", filter.event_type.as_deref()),
        ("state", state),
        (times[0].0, times[0].1.as_deref()),
        (times[1].0, times[1].1.as_deref()),
    ];
    for (name, value) in texts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        flag(name, value);
    }
    let switches = [(job.how.force, "--force"), (job.how.ignore_stale, "--ignore-stale")];
    words.extend(switches.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()));
    words.join(" ")
}

/// The word for the state a replay asks for.
fn state_word(filter: &ReplayFilter) -> Option<&'static str> {
    if filter.unrouted { Some("unrouted") } else { filter.state.map(State::as_str) }
}

/// The routes a replay names.
fn names(job: &Replay, routes: &[RouteView]) -> Vec<String> {
    let name = |number: &RouteNo| {
        let view = routes.iter().find(|view| view.route == *number);
        view.map_or_else(|| number.0.to_string(), |view| view.name.clone())
    };
    job.filter.routes.iter().map(name).collect()
}

/// A replay; the fields are never renamed.
pub(super) fn as_json(job: &Replay, routes: &[RouteView]) -> Value {
    let filter = &job.filter;
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let receipts: Vec<_> = filter.receipts.iter().map(ReceiptId::to_string).collect();
    let state = state_word(filter);
    json!({
        "replay": job.id.to_string(),
        "phase": job.phase.as_str(),
        "created_at": job.created_at.to_string(),
        "who": job.who,
        "why": job.why,
        "planned": job.planned,
        "opened": job.opened,
        "passed": job.passed,
        "rate": job.rate,
        "force": job.how.force,
        "ignore_stale": job.how.ignore_stale,
        "receipts": receipts,
        "routes": names(job, routes),
        "source": filter.source,
        "event_type": filter.event_type,
        "since": time(filter.since),
        "until": time(filter.until),
        "state": state,
    })
}
