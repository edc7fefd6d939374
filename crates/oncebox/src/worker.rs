//! The worker: due deliveries into consumers, and what came of them back into the store.
//!
//! One line per delivery: claim, payload, deliver, next, finish. Everything around it keeps that
//! line short: `slots` says how much of each route may be claimed, `leases` keeps what is held
//! good, `finisher` commits endings together, `rescuer` takes over from workers that died. No
//! clock of this process decides anything about a delivery: leases and due times are the store's,
//! only pauses of our own run here.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Mutex, Notify, mpsc, watch};
use tokio::task::JoinSet;
use tracing::{error, warn};

use crate::delivery::{Claimed, DeliveryId, Next, Outcome, Payload, Reason};
use crate::limits;
use crate::receipt::RouteNo;
use crate::route::RouteRules;
use crate::store::{Rescued, Store, StoreError};

mod aside;
mod breaker;
mod breakers;
mod chance;
mod finisher;
mod later;
mod leases;
mod line;
mod memory;
mod rate;
mod rescuer;
mod slots;
mod throttle;

pub use breaker::{BreakerChange, BreakerState, BreakerView};
pub(crate) use chance::Backoff;
pub use chance::chance;

use finisher::Ended;
use later::Later;
use leases::{Cut, Leases};
use memory::Memory;
use slots::Slots;

/// What deliveries of a route are handed to.
#[async_trait]
pub trait Consumer: Send + Sync + 'static {
    /// Tries a delivery once. The future is dropped when the lease is lost; a panic is a failed
    /// attempt.
    async fn deliver(&self, delivery: &Claimed, payload: Payload) -> Report;

    /// Whether it is just telling the store how a delivery ended. It is not cut short then: its
    /// lease may seem lost because that has ended it.
    fn is_ending(&self, _delivery: &Claimed) -> bool {
        false
    }
}

/// What a consumer made of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The outcome; the route's rules decide where it leads.
    pub outcome: Outcome,
    /// The consumer's answer, where it is a number.
    pub status: Option<u16>,
    /// What went wrong or why to come back: shown to operators.
    pub detail: Option<String>,
    /// What the consumer says it did.
    pub summary: Option<String>,
    /// What it says about the destination.
    pub health: Health,
    /// Who tells the store.
    pub told: Told,
}

/// What an attempt says about the destination of its route. The breaker goes by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It answered sensibly, whatever it answered; or what went wrong tells of the event alone.
    #[default]
    Well,
    /// There was no connection to it.
    Unreachable,
    /// It did not answer in time, or not to the end, or that it cannot serve, as with 5xx.
    Failing,
    /// It asked for fewer requests, as with 429.
    Overloaded,
}

/// Who tells the store how an attempt ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// The worker does, by the outcome.
    #[default]
    NotYet,
    /// The consumer has, in a transaction of its own, and the delivery goes there.
    Ended(Next),
    /// The consumer tried to, and whether that was committed is not known. If it was not, the
    /// attempt ended by the outcome.
    Perhaps(Next),
    /// The lease was not good any more, and nothing was changed.
    Lost,
    /// The store has ended the attempt and holds the delivery: whether an effect of it happened
    /// is not known.
    Parked,
}

impl Report {
    /// A sensible answer with nothing to add.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            status: None,
            detail: None,
            summary: None,
            health: Health::Well,
            told: Told::NotYet,
        }
    }

    /// A failure of the destination, to be tried again.
    pub fn failed(detail: impl Into<String>) -> Self {
        let outcome = Outcome::Retry { after: None };
        Self { detail: Some(detail.into()), health: Health::Failing, ..Self::of(outcome) }
    }

    /// What went wrong, in a few words.
    fn cause(&self) -> String {
        const LONGEST: usize = 80;
        match (self.status, &self.detail) {
            (Some(status), _) => format!("answered {status}"),
            (None, Some(detail)) => detail.chars().take(LONGEST).collect(),
            (None, None) => String::new(),
        }
    }
}

/// A route the worker works for.
#[derive(Clone)]
pub struct WorkRoute {
    /// Its stored number.
    pub number: RouteNo,
    /// Its name.
    pub name: Arc<str>,
    /// Its rules.
    pub rules: RouteRules,
    /// Deliveries that may be with the consumer at the same time.
    pub concurrency: usize,
    /// Attempts per second, if they are limited.
    pub rate: Option<NonZeroU32>,
    /// How long its claims are good for unless they are extended, where that is less than usual:
    /// what a worker that was killed had comes back that soon.
    pub lease: Option<Duration>,
    /// What its deliveries are handed to.
    pub consumer: Arc<dyn Consumer>,
}

/// Told of everything the worker does, for metrics and for those who wait for an outcome. The
/// worker waits for it: it must be quick.
pub trait Observer: Send + Sync + 'static {
    /// An attempt ended and its ending is durable.
    fn attempted(
        &self,
        _route: &str,
        _claimed: &Claimed,
        _next: Next,
        _report: &Report,
        _took: Duration,
    ) {
    }

    /// That attempt was the first of a delivery whose route guards its object, and whose event says
    /// no version: it cannot be told from stale ones.
    fn unversioned(&self, _route: &str, _claimed: &Claimed) {}

    /// The lease of a delivery was lost; what this worker made of it changed nothing.
    fn lease_lost(&self, _route: &str, _claimed: &Claimed) {}

    /// An attempt ended and its delivery is held, since whether an effect happened is not known.
    fn parked(&self, _route: &str, _claimed: &Claimed) {}

    /// A delivery is held, since its stored body does not match the digest taken when it arrived.
    fn damaged(&self, _route: &str, _claimed: &Claimed) {}

    /// A delivery was finished at the claim, without an attempt.
    fn skipped(&self, _route: &str, _delivery: DeliveryId, _reason: Reason) {}

    /// Deliveries whose leases ran out were taken from their workers.
    fn rescued(&self, _rescued: &Rescued) {}

    /// The breaker of a route changed.
    fn breaker(&self, _route: &str, _change: BreakerChange) {}
}

/// An observer that looks away.
pub struct NoObserver;

impl Observer for NoObserver {}

/// How a worker works.
#[derive(Clone)]
pub struct WorkerOptions {
    /// Who holds the leases, for operators to see.
    pub name: String,
    /// How long a claim is good for unless it is extended.
    pub lease: Duration,
    /// How often to look for due deliveries when nobody told of any.
    pub poll: Duration,
    /// Bytes of payloads that may be in memory. A larger payload is allowed alone.
    pub memory: usize,
    /// Who is told.
    pub observer: Arc<dyn Observer>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            name: format!("worker-{}", std::process::id()),
            lease: limits::LEASE,
            poll: limits::POLL,
            memory: limits::WORKER_BYTES,
            observer: Arc::new(NoObserver),
        }
    }
}

/// A worker. Dropped without being stopped it is gone at once, as in a crash: attempts are cut
/// short, and its leases run out.
pub struct Worker {
    shared: Arc<Shared>,
    /// The tasks that end when the worker is told to stop.
    loops: Mutex<JoinSet<()>>,
    /// The tasks that have to go on until no lease is held.
    keepers: Mutex<JoinSet<()>>,
}

/// What the parts of a worker share.
struct Shared {
    store: Arc<dyn Store>,
    options: WorkerOptions,
    slots: std::sync::Mutex<Slots>,
    leases: Leases,
    later: Later,
    memory: Memory,
    endings: mpsc::Sender<Ended>,
    /// Told when a place came free that a claim could fill.
    freed: Notify,
    /// Told when rules may have changed by which deliveries are held.
    changed: Notify,
    /// Told when a breaker changed.
    breakers_changed: Notify,
    /// Whether the store may know of a breaker that is not closed.
    breakers_told: AtomicBool,
    stop: watch::Sender<bool>,
    /// When a worker that stops gives up telling the store.
    finish_by: OnceLock<Instant>,
    failed: watch::Sender<Option<String>>,
}

impl Worker {
    /// Starts to claim and deliver.
    pub fn start(store: Arc<dyn Store>, routes: Vec<WorkRoute>, options: WorkerOptions) -> Self {
        let mut worker = Self::by_hand(store, routes, options);
        worker.keepers.get_mut().spawn(leases::keep(worker.shared.clone()));
        worker.loops.get_mut().spawn(line::run(worker.shared.clone()));
        worker.loops.get_mut().spawn(rescuer::run(worker.shared.clone()));
        worker.loops.get_mut().spawn(rescuer::run_releases(worker.shared.clone()));
        worker.loops.get_mut().spawn(breakers::run(worker.shared.clone()));
        worker.loops.get_mut().spawn(rescuer::run_fills(worker.shared.clone()));
        worker
    }

    /// A worker that claims, extends and rescues only when it is told to, by [`Self::run_once`],
    /// [`Self::beat`], [`Self::rescue`], [`Self::release`] and [`Self::tell_breakers`].
    pub fn by_hand(store: Arc<dyn Store>, routes: Vec<WorkRoute>, options: WorkerOptions) -> Self {
        let (endings, ended) = mpsc::channel(limits::ENDINGS_WAITING);
        let shared = Arc::new(Shared {
            slots: std::sync::Mutex::new(Slots::new(routes, Instant::now())),
            leases: Leases::new(),
            later: Later::default(),
            memory: Memory::new(options.memory),
            freed: Notify::new(),
            changed: Notify::new(),
            breakers_changed: Notify::new(),
            breakers_told: AtomicBool::new(false),
            stop: watch::Sender::new(false),
            finish_by: OnceLock::new(),
            failed: watch::Sender::new(None),
            store,
            options,
            endings,
        });
        let mut keepers = JoinSet::new();
        keepers.spawn(finisher::run(shared.clone(), ended));
        Self { shared, loops: Mutex::default(), keepers: Mutex::new(keepers) }
    }

    /// Claims what is due and there is room for, and waits until it has ended. Returns how many
    /// deliveries that moved.
    pub async fn run_once(&self) -> Result<usize, StoreError> {
        let moved = line::claim(&self.shared).await?;
        self.idle().await;
        Ok(moved)
    }

    /// Claims what is due and there is room for, and does not wait for it.
    pub async fn claim_once(&self) -> Result<usize, StoreError> {
        line::claim(&self.shared).await
    }

    /// Extends every lease that is held, due or not. Returns how many those were.
    pub async fn beat(&self) -> Result<usize, StoreError> {
        leases::extend(&self.shared, leases::Which::All).await
    }

    /// Takes deliveries whose leases ran out from their workers.
    pub async fn rescue(&self) -> Result<Rescued, StoreError> {
        rescuer::rescue(&self.shared).await
    }

    /// Looks at everything that is held, and lets go what nothing is in the way of. Returns how
    /// many those were.
    pub async fn release(&self) -> Result<usize, StoreError> {
        rescuer::release(&self.shared).await
    }

    /// Tells the store which breakers are not closed, for operators to see.
    pub async fn tell_breakers(&self) -> Result<(), StoreError> {
        breakers::tell(&self.shared).await
    }

    /// Waits until nothing is held.
    pub async fn idle(&self) {
        self.shared.leases.none_held().await;
    }

    /// Replaces the routes. What was removed is no longer claimed, what is with its consumer is
    /// finished; what changed applies from the next claim. What is held is looked at again under
    /// the rules that are stored by now.
    pub fn set_routes(&self, routes: Vec<WorkRoute>) {
        self.shared.slots().set_routes(routes, Instant::now());
        self.turn_over();
        self.shared.changed.notify_one();
        self.shared.freed.notify_one();
    }

    /// The breaker of each route.
    pub fn breakers(&self) -> Vec<(Arc<str>, BreakerView)> {
        let breakers = self.shared.slots().breakers(Instant::now());
        breakers.into_iter().map(|(route, view)| (route.name.clone(), view)).collect()
    }

    /// Resolves with the reason once the store has failed for good; see
    /// [`Ingest::failed`](crate::ingest::Ingest::failed).
    pub async fn failed(&self) -> String {
        let mut failed = self.shared.failed.subscribe();
        let reason = failed.wait_for(Option::is_some).await.expect("the sender lives in self");
        reason.clone().expect("waited for a reason")
    }

    /// Claims no more, returns what was not begun, waits up to `grace` for what is with its
    /// consumers, fails the rest, and ends once the store knows it all.
    pub async fn stop(&self, grace: Duration) {
        self.shared.stop.send_replace(true);
        self.shared.slots().stop();
        self.turn_over();
        // A claim that is on its way may still bring something, which is returned as well.
        let mut loops = self.loops.lock().await;
        let ending = async { while loops.join_next().await.is_some() {} };
        if tokio::time::timeout(grace.max(limits::STOP_FINISH), ending).await.is_err() {
            warn!("a claim did not end; its leases will run out");
        }
        loops.shutdown().await;
        if tokio::time::timeout(grace, self.idle()).await.is_err() {
            self.shared.leases.cut_all(Cut::Stopped);
        }
        let _ = self.shared.finish_by.set(Instant::now() + limits::STOP_FINISH);
        if tokio::time::timeout(2 * limits::STOP_FINISH, self.idle()).await.is_err() {
            let leases = self.shared.leases.count();
            error!(
                leases,
                "shutdown timed out; unrecorded deliveries retry when their leases expire"
            );
        }
        breakers::forget(&self.shared).await;
        self.keepers.lock().await.shutdown().await;
    }

    /// Looks at the queue of every route: what waits may begin, or has to go back.
    fn turn_over(&self) {
        let routes = self.shared.slots().numbers();
        for route in routes {
            line::begin(&self.shared, route);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stop.send_replace(true);
        self.shared.slots().stop();
        self.shared.leases.cut_all(Cut::Abandoned);
    }
}

impl Shared {
    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().expect("no panic while counting")
    }

    fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Resolves once the worker is told to stop.
    async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        stop.wait_for(|stop| *stop).await.expect("the sender lives in self");
    }

    /// Waits, or until the worker is told to stop.
    async fn pause(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stopped() => {}
        }
    }

    /// How long until it is worth to look for due deliveries without being told.
    fn until_next_look(&self) -> Duration {
        let now = Instant::now();
        let next = self.slots().next_look(now).into_iter().chain(self.later.next(now)).min();
        let wait = next.map(|next| next.saturating_duration_since(now));
        wait.map_or(self.options.poll, |wait| wait.min(self.options.poll))
    }

    /// Takes note of an error that no retry mends.
    fn note_failure(&self, error: &StoreError) {
        if let StoreError::Fatal(reason) = error {
            self.failed.send_replace(Some(reason.clone()));
        }
    }

    /// A lease is no longer ours: whatever was done under it changes nothing.
    fn lease_lost(&self, route: &WorkRoute, claimed: &Claimed, when: &str) {
        let (delivery, receipt) = (claimed.delivery, claimed.delivery.receipt);
        warn!(route = &*route.name, %delivery, %receipt, "the lease was lost {when}");
        self.options.observer.lease_lost(&route.name, claimed);
        self.leases.let_go(claimed);
    }
}
