//! Everything a handler needs, in one place.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use ipnet::IpNet;
use oncebox::clock::Clock;
use oncebox::ingest::{Ingest, IngestOptions};
use oncebox::maintenance::Maintenance;
use oncebox::receipt::{ReceiptMint, RouteNo};
use oncebox::store::{Store, StoreError};
use oncebox::worker::{Consumer, WorkRoute, Worker, WorkerOptions};
use tokio::sync::Semaphore;

use crate::activity::Activity;
use crate::address;
use crate::awaited::Awaited;
use crate::clock_watch::ClockWatch;
use crate::config::{Config, Keyrings, Signers};
use crate::destination::Destinations;
use crate::failures::Failures;
use crate::keys::Keys;
use crate::metrics::{Metrics, SourceMetrics};
use crate::observer::Teller;
use crate::push::Dial;
use crate::route::Routes;
use crate::shares::Shares;
use crate::source::{Source, Sources};
use crate::tallies::Tallies;

/// The server's state. What a reload may change is behind [`Inbox::live`].
pub struct Inbox {
    /// Where receipts are kept.
    pub store: Arc<dyn Store>,
    /// The way into the store.
    pub ingest: Ingest,
    /// The time by which signatures are judged.
    pub clock: Arc<dyn Clock>,
    /// Whether that time can be trusted.
    pub clock_watch: ClockWatch,
    /// Where receipt ids come from.
    pub mint: Arc<ReceiptMint>,
    /// What Prometheus is told.
    pub metrics: Arc<Metrics>,
    /// The counters of requests to no source of ours.
    pub unknown: SourceMetrics,
    /// Failed signatures, by address.
    pub failures: Failures,
    /// Memory left for bodies that are being received, in bytes.
    pub memory: Arc<Semaphore>,
    /// What bodies of each address take of it.
    pub shares: Arc<Shares>,
    /// Turns for checks of signatures that take long: at most every other core has one.
    pub heavy: Semaphore,
    /// Who waits for an outcome.
    pub awaited: Arc<Awaited>,
    /// What providers sign with, where they publish it.
    pub keys: Keys,
    /// What delivers, if this process does.
    pub worker: Option<Worker>,
    /// What one node does for all, if this is the one.
    pub maintenance: Arc<Maintenance>,
    /// How often deliveries were counted.
    pub tallies: Tallies,
    /// What sources are sent, for the people who operate them.
    pub activity: Arc<Activity>,
    dial: Dial,
    handlers: Handlers,
    live: ArcSwap<Live>,
    draining: AtomicBool,
}

/// What the parts of a configuration are made to run with.
pub struct Means {
    /// Where receipts are kept.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What Prometheus is told.
    pub metrics: Arc<Metrics>,
    /// How destinations are reached.
    pub dial: Dial,
    /// Handlers of this process.
    pub handlers: Handlers,
}

/// Handlers in this process, by the names of the routes they work on. Each of those has
/// `pull = true`.
pub type Handlers = HashMap<String, Arc<dyn Consumer>>;

/// What a process does. Health and metrics it always has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Receives webhooks.
    pub ingest: bool,
    /// Delivers them, and drives replays.
    pub worker: bool,
    /// Answers the API.
    pub console: bool,
}

impl Roles {
    /// Everything.
    pub const ALL: Self = Self { ingest: true, worker: true, console: true };
}

/// What a reload replaces. A request keeps the one it started with.
#[derive(Debug)]
pub struct Live {
    /// The sources.
    pub sources: Sources,
    /// The routes.
    pub routes: Routes,
    /// The destinations of outbox messages.
    pub destinations: Destinations,
    /// The largest body.
    pub max_body: usize,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// Bytes of a body that have to come in a second.
    pub min_upload_rate: u64,
    /// The memory that bodies of one address may take together.
    pub memory_share: usize,
    /// The memory that bodies which come in several pieces may take together.
    pub waiting_memory: usize,
    /// Networks whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether an unknown source is answered like a wrong signature.
    pub hide_unknown_sources: bool,
    /// Names that the admin listener goes by on this machine.
    pub admin_hosts: Vec<String>,
    /// Failed signatures per address and minute.
    pub failed_signatures_per_minute: u32,
}

impl Live {
    /// Registers what the configuration names and puts it together.
    pub async fn build(
        config: &Config,
        keyrings: Keyrings,
        mut signers: Signers,
        means: &Means,
    ) -> Result<Self, StoreError> {
        let routes = Routes::build(config, &mut signers, means).await?;
        let destinations = Destinations::build(config, &mut signers, means).await?;
        let sources = Sources::build(config, keyrings, &signers, &routes, means).await?;
        let numbers = sources.iter().map(|source| (source.name.to_string(), source.number.0));
        check_distinct("sources", numbers.collect())?;
        let numbers = routes.iter().map(|route| (route.name.to_string(), route.number.0));
        check_distinct("routes", numbers.collect())?;
        // Before anything is received: what others keep shorter, or do not know, is not forgotten.
        means.store.tell_windows(&config.keeps()).await?;
        destinations.put_in_force(means).await?;
        routes.put_in_force(means).await?;
        Ok(Self {
            sources,
            routes,
            destinations,
            max_body: config.server.max_body.bytes(),
            body_timeout: config.server.body_timeout.0,
            min_upload_rate: config.server.min_upload_rate.0,
            memory_share: config.server.memory_share(),
            waiting_memory: config.server.waiting_memory(),
            trusted_proxies: config.server.trusted_proxies.clone(),
            hide_unknown_sources: config.server.hide_unknown_sources,
            admin_hosts: config.server.admin_hosts.clone(),
            failed_signatures_per_minute: config.limits.failed_signatures_per_minute,
        })
    }

    /// What stands in for a source of that name, where nobody may tell whether there is one.
    pub fn stand_in(&self, name: &str) -> Option<Arc<Source>> {
        self.hide_unknown_sources.then(|| self.sources.stand_in(name)).flatten()
    }

    /// Whether an address is that of one sender, who has a share of what all have.
    pub fn is_one_sender(&self, address: IpAddr) -> bool {
        address::is_one_sender(address, &self.trusted_proxies)
    }

    /// Everything the worker works on.
    pub fn work(&self) -> Vec<WorkRoute> {
        let mut work = self.routes.work();
        work.extend(self.destinations.work());
        work
    }

    /// The names of its routes, also of those that carry outbox messages.
    fn route_names(&self) -> HashMap<RouteNo, String> {
        let routes = self.routes.iter().map(|route| (route.number, &route.name));
        let carriers = self.destinations.iter().map(|it| (it.number, &it.carrier));
        routes.chain(carriers).map(|(number, name)| (number, name.to_string())).collect()
    }

    /// Whether it names a route of the store.
    pub fn has_route(&self, number: RouteNo) -> bool {
        self.routes.of_number(number).is_some() || self.destinations.of_number(number).is_some()
    }
}

/// Refuses two names that lead to one source or route: one of them was given up by a rename.
fn check_distinct(kind: &str, mut names: Vec<(String, i16)>) -> Result<(), StoreError> {
    names.sort_by_key(|(_, number)| *number);
    match names.windows(2).find(|pair| pair[0].1 == pair[1].1) {
        None => Ok(()),
        Some(pair) => Err(StoreError::Unfit {
            problem: format!(
                "{kind} `{}` and `{}` are the same one, renamed",
                pair[0].0, pair[1].0
            ),
            hint: "Remove the old name, or give what is new a name that was never used.".into(),
        }),
    }
}

impl Inbox {
    /// Builds the state and starts to record; and to deliver, if told how.
    pub async fn start(
        config: &Config,
        keyrings: Keyrings,
        signers: Signers,
        means: Means,
        ingest: IngestOptions,
        worker: Option<WorkerOptions>,
        keys: Keys,
    ) -> Result<Self, StoreError> {
        let live = Live::build(config, keyrings, signers, &means).await?;
        let Means { store, clock, metrics, dial, handlers } = means;
        let told = ingest.on_commit.clone();
        let counted = metrics.clone();
        let options = IngestOptions {
            on_commit: Arc::new(move |events, took| {
                counted.commit(events);
                told(events, took);
            }),
            ..ingest
        };
        let mint = store.mint();
        let awaited = Arc::new(Awaited::default());
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let activity = Arc::new(Activity::default());
        activity.name_routes(live.route_names());
        let observer = Arc::new(Teller {
            metrics: metrics.clone(),
            awaited: awaited.clone(),
            activity: activity.clone(),
        });
        let worker = worker.map(|options| {
            let options = WorkerOptions { observer, ..options };
            Worker::start(store.clone(), live.work(), options)
        });
        Ok(Self {
            ingest: Ingest::start(store.clone(), options),
            clock_watch: ClockWatch::new(clock.now(), Instant::now()),
            mint,
            unknown: metrics.of_source("unknown"),
            failures: Failures::default(),
            memory: Arc::new(Semaphore::new(config.server.memory_budget.bytes())),
            shares: Arc::default(),
            heavy: Semaphore::new(cores.div_ceil(2)),
            awaited,
            keys,
            worker,
            maintenance: Arc::new(Maintenance::new(store.clone(), clock.clone())),
            tallies: Tallies::default(),
            activity,
            dial,
            handlers,
            live: ArcSwap::from_pointee(live),
            draining: AtomicBool::new(false),
            store,
            clock,
            metrics,
        })
    }

    /// What another configuration would be made to run with.
    pub fn means(&self) -> Means {
        Means {
            store: self.store.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            dial: self.dial.clone(),
            handlers: self.handlers.clone(),
        }
    }

    /// What is in force now.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// Puts something new in force. Requests under way keep what they started with.
    pub fn replace(&self, live: Live) {
        if let Some(worker) = &self.worker {
            worker.set_routes(live.work());
        }
        self.activity.name_routes(live.route_names());
        self.live.store(Arc::new(live));
    }

    /// Whether the server is about to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Says that the server is about to stop.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Why the store has failed for good, if it has.
    pub fn failure(&self) -> Option<String> {
        self.ingest.failure()
    }

    /// Counts deliveries by state, unless that was done just now.
    pub async fn tally(&self) {
        self.tallies.refresh(self).await;
    }

    /// Looks at the clock once.
    pub async fn watch_clock(&self) {
        self.clock_watch.run_once(&*self.clock, &*self.store, &self.metrics).await;
    }
}
