//! `oncebox replay`: opening deliveries again, or opening those that never were.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use oncebox::receipt::ReceiptId;
use oncebox::replay::{How, Plan, Replay as Job, plan, plan_each};
use oncebox::store::Store;
use oncebox_server::config::Config;

use super::deliveries::view::Routes;
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::operator::{Operator, asks, confirm, reason};
use crate::output::{Screen, count, notice};
use crate::when::{When, when};

pub(crate) mod drive;
pub(crate) mod outlook;
mod show;
mod which;

use outlook::Outlook;

/// Deliver again what was received: by receipt, or by a filter
///
/// Dead, held and skipped deliveries are opened again, with a fresh number of attempts and under
/// the same Idempotency-Key. What was processed is left alone without --force, and what is held as
/// twin or conflict without --odd. With --route,
/// receipts that the route takes by the configuration and never took are delivered to it too,
/// unless a --state is asked for.
///
/// The plan is printed first. The replay itself is a job in the store: if this command is
/// interrupted, a running server goes on with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox replay --route billing --state dead --since 1d --dry-run
  oncebox replay --route billing --state dead --since 1d --rate 50 --reason 'billing is fixed'
  oncebox replay evt_123 --force
  oncebox replay --route new-route --since 2026-01-01
  oncebox replay --source shop --state held --odd --reason 'the corrections are right'

Exit codes: 0 done, 1 interrupted, refused or nothing to do for the receipts named, 2 neither
receipts nor a filter, 3 not found.")]
pub(crate) struct Replay {
    /// Receipts, deliveries or events: ids, or the beginnings of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    #[arg(skip)]
    receipts: Vec<ReceiptId>,

    /// Only to this route; may be given more than once
    #[arg(long = "route", value_name = "NAME")]
    routes: Vec<String>,

    /// Only of this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,

    /// Only of this event type; * stands for any text
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,

    /// Only in this state
    #[arg(long, value_enum)]
    state: Option<Wanted>,

    /// Also what is held as twin or conflict; receipts that are named need no such word
    #[arg(long)]
    odd: bool,

    /// Pass the guards against stale and repeated events
    #[arg(long)]
    ignore_stale: bool,

    #[command(flatten)]
    manner: Manner,
}

/// How a replay goes, whatever it is about.
#[derive(Debug, Args)]
pub(crate) struct Manner {
    /// Only received since then: 2h, 2026-01-02, 2026-01-02T03:04:05Z or Unix seconds
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<When>,

    /// Only received before then
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<When>,

    /// Print the plan, also of each delivery, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// How many deliveries a dry run shows
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Deliveries a second at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,

    /// Also run again what was processed
    #[arg(long)]
    force: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    /// Print one JSON object per route, and one for the replay; a dry run prints one per delivery
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    operator: Operator,
}

/// States that can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// Given up
    Dead,
    /// Finished without being delivered
    Skipped,
    /// Done; needs --force
    Processed,
    /// Waiting for another
    Held,
    /// Taken by no route so far
    Unrouted,
}

impl Replay {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        if !self.says_which() {
            return Err(Failure::usage("neither receipts nor a filter")
                .hint("name receipts, or say which: --route, --source, --type, --since, --state"));
        }
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let done = async { self.resolved(&store).await?.replay(&config, &store).await }.await;
        store.close().await;
        done
    }

    fn says_which(&self) -> bool {
        let texts = [&self.source, &self.event_type];
        !self.ids.is_empty()
            || !self.routes.is_empty()
            || texts.iter().any(|text| text.is_some())
            || self.manner.since.is_some()
            || self.manner.until.is_some()
            || self.state.is_some()
            || self.odd
    }

    /// The replay of what one route has: of these receipts, or of all.
    pub(crate) fn on_route(
        route: String,
        receipts: Vec<ReceiptId>,
        state: Option<&str>,
        manner: Manner,
    ) -> Self {
        Self {
            ids: Vec::new(),
            receipts,
            routes: vec![route],
            source: None,
            event_type: None,
            state: state.and_then(|word| Wanted::from_str(word, false).ok()),
            odd: false,
            ignore_stale: false,
            manner,
        }
    }

    /// Plans the replay, shows the plan, and does it.
    pub(crate) async fn replay(
        &self,
        config: &Config,
        store: &Arc<dyn Store>,
    ) -> Result<(), Failure> {
        let manner = &self.manner;
        let routes = Routes::load(&**store, config).await?;
        let filter = self.filter(store, config, &routes).await?;
        let how = How { force: manner.force, ignore_stale: self.ignore_stale };
        let plan = plan(&**store, &filter, how).await?;
        let mut screen = Screen::stdout();
        show::plan(&mut screen, &plan, &routes, manner.json)?;
        if manner.dry_run && plan.total() > 0 {
            let (planned, more) = plan_each(&**store, &filter, how, manner.limit).await?;
            show::deliveries(&mut screen, &planned, &routes, manner.json)?;
            if more {
                notice(format!("the first {}; --limit N shows more", planned.len()));
            }
        }
        screen.flush()?;
        // Locked while it lives.
        drop(screen);
        let touched = usize::try_from(plan.touched()).unwrap_or(usize::MAX);
        if touched == 0 {
            return self.nothing_to_do(store, &plan, &routes).await;
        }
        let outlook = Outlook::of(&plan, &routes);
        if manner.dry_run || asks(manner.yes) {
            outlook.clauses().iter().for_each(|clause| notice(format!("note: {clause}")));
        }
        if manner.dry_run {
            return Ok(());
        }
        confirm(manner.yes, &format!("Replay {}?", count(touched, "delivery")))?;
        let act = manner.operator.act(manner.reason.as_deref());
        let job = Job { rate: manner.rate, ..Job::new(filter, how, plan.total(), &act) };
        store.create_replay(&job, &act).await?;
        drive::drive(store, job, &outlook, manner.json).await
    }

    /// A filter may well match nothing. Whoever names receipts expects something to happen.
    async fn nothing_to_do(
        &self,
        store: &Arc<dyn Store>,
        plan: &Plan,
        routes: &Routes,
    ) -> Result<(), Failure> {
        let processed: u64 = plan.routes.values().map(|route| route.processed).sum();
        let hint = match (processed, plan.total()) {
            (0, 0) => "no route has a delivery of it; --route NAME delivers it to a route",
            (0, _) => "it is open already, and goes on by itself",
            _ => "what was processed is run again only with --force",
        };
        if self.receipts.is_empty() || self.manner.dry_run {
            notice("nothing to replay");
            if plan.total() > 0 || !self.receipts.is_empty() {
                notice(format!("hint: {hint}"));
            } else if self.state == Some(Wanted::Held) && waits_for_routes(store, routes).await? {
                notice(
                    "hint: what `oncebox held list` shows as paused or no-route waits for its \
                     route, and goes on with it: `oncebox routes resume`, or configure it again",
                );
            }
            return Ok(());
        }
        Err(Failure::failed("nothing to replay").hint(hint))
    }
}

/// Whether anything is shown as held because its whole route waits.
async fn waits_for_routes(store: &Arc<dyn Store>, routes: &Routes) -> Result<bool, Failure> {
    let tallies = store.tally().await?;
    Ok(tallies.iter().any(|tally| {
        let view = routes.views.iter().find(|view| view.route == tally.route);
        let stored = (tally.state, tally.reason);
        view.is_some_and(|view| routes.shown(&view.name, stored.0, stored.1).state != stored.0)
    }))
}
